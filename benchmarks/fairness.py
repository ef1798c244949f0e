"""Does one space that writes as much as it can make another wait? A quiet space publishes a turn and recalls it.

Alone first; then while another space imports a log (`lamina import`'s own way, which waits for the journal); then
while clients of another space publish as fast as they are answered, heeding nothing. Told are the quiet space's times
from publishing to finding, and what the daemon needs at most.

    python -m benchmarks.fairness [--seconds 30]
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.common import arguments, daemon, keep, quantiles, rss_mb
from lamina.client import Memory
from lamina.home import Home

PAUSE_S = 0.2
CLIENTS = 16
SENTENCE = (
    "The tide tables of harbour {n} were printed again, since the pilot found the third column out by an hour. "
)


async def quiet(home: Home, seconds: float, tag: str) -> dict[str, Any]:
    """One turn at a time, each recalled by a word that no other holds."""
    published: list[float] = []
    found: list[float] = []
    missed = 0
    async with Memory.open(space="quiet", home=home.path) as memory:
        end = time.monotonic() + seconds
        for n in itertools.count():
            if time.monotonic() > end:
                break
            word = f"{tag}word{n}"
            started = time.perf_counter()
            accepted = await memory.turn("user", f"remember the {word} of today", session="s")
            published.append(time.perf_counter() - started)
            hits = await memory.recall(word, min_seq=accepted.seq, deadline_s=10.0, limit=3)
            if any(word in item.text for item in hits.items):
                found.append(time.perf_counter() - started)
            else:
                missed += 1
            await asyncio.sleep(PAUSE_S)
    return {"publish": quantiles(published), "publish_to_recall": quantiles(found), "missed": missed}


@contextlib.asynccontextmanager
async def importing(home: Home) -> AsyncIterator[None]:
    """`lamina import` of a log that does not end before the block does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flood.jsonl"
        with file.open("wb") as out:
            for n in range(400_000):
                line = {
                    "role": "user" if n % 2 else "assistant",
                    "content": SENTENCE.format(n=n),
                    "session": f"s{n // 50}",
                }
                out.write(msgspec.json.encode(line) + b"\n")
        command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path)]
        arguments = ["import", str(file), "--space", "flood", "--format", "jsonl", "--wait", "l0"]
        child = await asyncio.create_subprocess_exec(*command, *arguments, stdout=asyncio.subprocess.DEVNULL)
        try:
            yield
        finally:
            if child.returncode is not None:
                print(f"the import ended early, with code {child.returncode}", file=sys.stderr)
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()


@contextlib.asynccontextmanager
async def hammering(home: Home) -> AsyncIterator[list[int]]:
    """Many writers of one space that wait for nothing but the answer to each turn; how many turns they sent."""
    sent = [0]

    async def write(memory: Memory, at: int) -> None:
        for n in itertools.count():
            await memory.turn("user", SENTENCE.format(n=n), session=f"w{at}")
            sent[0] += 1

    async with Memory.open(space="flood", home=home.path) as memory:
        writers = [asyncio.create_task(write(memory, at)) for at in range(CLIENTS)]
        try:
            yield sent
        finally:
            for writer in writers:
                writer.cancel()
            await asyncio.gather(*writers, return_exceptions=True)


async def main() -> None:
    options = arguments(__doc__, seconds=30.0)
    figures: dict[str, Any] = {"seconds_each": options.seconds}
    async with daemon() as (home, pid):
        figures["alone"] = await quiet(home, options.seconds / 2, "alone")
        figures["rss_mb_before"] = rss_mb(pid)
        async with importing(home):
            await asyncio.sleep(3)
            figures["beside_an_import"] = await quiet(home, options.seconds, "import")
            figures["rss_mb_import"] = rss_mb(pid)
    async with daemon() as (home, pid), hammering(home) as sent:
        await asyncio.sleep(3)
        before, started = sent[0], time.monotonic()
        figures["beside_16_writers"] = await quiet(home, options.seconds, "writers")
        figures["writers_turns_per_s"] = round((sent[0] - before) / (time.monotonic() - started), 1)
        figures["rss_mb_writers"] = rss_mb(pid)
    keep("fairness", figures)


if __name__ == "__main__":
    asyncio.run(main())
