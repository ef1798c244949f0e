"""How fast is a view made again, is it the one that was, and does it cost the same whatever there is already?

A mixed log of real chats and real tool results; views are folded, deleted, and made again from the log and from the
ledger alone. Each rebuild is a process of its own, so that its memory is its own.

usage: python -m benchmarks.rebuild [--sizes 5000,15000,50000] [--views journal,offload,vectors,atoms]
"""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.common import arguments, keep, real_turns
from lamina import events, ids, times
from lamina.bus import Outgoing
from lamina.bus.local import local_bus
from lamina.bus.nats import NatsBus
from lamina.home import Home
from lamina.rebuild.progress import Rebuilt
from lamina.rebuild.view import rebuild_view
from lamina.runtime.registry import fold_services
from lamina.verify.digests import digest

SPACE = "bench"
BATCH = 500
MOST_CHARS = 200_000


def tool_results(data: Path) -> list[tuple[str, str, str]]:
    """(session, action, observation) of real agents' runs."""
    found: list[tuple[str, str, str]] = []
    for path in sorted(data.glob("swe_trajectories_*.jsonl.gz")):
        with gzip.open(path, "rb") as file:
            for line in file:
                run = msgspec.json.decode(line)
                found.extend((str(run["run"]), step["action"], step["observation"]) for step in run["steps"])
    return [one for one in found if len(one[2]) <= MOST_CHARS]


def mixed(data: Path, count: int) -> Iterator[Outgoing]:
    """Four turns, a tool result, and so on; ids of their own, so that none is a repetition."""
    turns, results = cycle(real_turns(data)), cycle(tool_results(data))
    at_us = 1_764_000_000_000_000
    for n in range(count):
        if n % 5 < 4:
            session, role, text = next(turns)
            made: Any = events.TurnRecorded(role=role, text=text[:MOST_CHARS])
        else:
            session, action, observation = next(results)
            made = events.ToolReturned(tool="shell", arguments={"command": action}, result=observation)
        event = events.make(
            made,
            id=ids.derived_id("bench", n),
            space=SPACE,
            session=f"{session} {n // 20_000}",
            time=times.from_micros(at_us + n * 1_000_000),
        )
        yield Outgoing(ids.event_subject(SPACE, event.type), events.encode(event))


async def publish(bus: NatsBus, data: Path, count: int) -> None:
    log = mixed(data, count)
    while batch := list(islice(log, BATCH)):
        await bus.publish_batch(batch)


async def fetched(bus: NatsBus) -> float:
    """Messages a second that a reader gets, doing nothing with them."""
    reader = bus.read([f"lamina.ev.*.{SPACE}.>"], after=0, name="bench")
    start, count = time.perf_counter(), 0
    while messages := await reader.fetch(2_000, 1.0):
        count += len(messages)
        if not reader.pending:
            break
    seconds = time.perf_counter() - start
    await reader.close()
    return count / seconds


async def one(folder: str, name: str) -> None:
    """Rebuild one view and say how it went: the child process."""
    home = Home(folder)
    async with local_bus(home.path) as (_, bus):
        done = await rebuild_view(fold_services()[name], bus, home, SPACE, lambda _: None)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rebuilt": msgspec.to_builtins(done), "peak_mb": round(peak_mb, 1)}))


async def child(home: Home, name: str) -> tuple[Rebuilt, float]:
    command = [sys.executable, "-m", "benchmarks.rebuild", "--one", name, "--home", str(home.path)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    found = json.loads(out.splitlines()[-1])
    return msgspec.convert(found["rebuilt"], Rebuilt), found["peak_mb"]


def view_of(home: Home, name: str) -> Path:
    return home.spaces / SPACE / "views" / f"{name}.db"


async def measured(data: Path, count: int, views: list[str]) -> dict[str, Any]:
    """Figures of every view at one size."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
        home = Home(folder)
        home.prepare()
        async with local_bus(home.path) as (_, bus):
            await publish(bus, data, count)
            figures["fetch_per_s"] = round(await fetched(bus))
        (home.spaces / SPACE).mkdir(parents=True, exist_ok=True)
        for name in views:
            await child(home, name)
            wanted = digest(view_of(home, name))
            shutil.rmtree(home.spaces / SPACE / "views")
            done, peak_mb = await child(home, name)
            figures[name] = {
                "events": done.events,
                "events_per_s": done.rate,
                "of_fetch_rate": round(done.rate / figures["fetch_per_s"], 2),
                "seconds": done.seconds,
                "peak_mb": peak_mb,
                "digests_equal": digest(view_of(home, name)) == wanted,
            }
            print(count, name, figures[name], file=sys.stderr)
    return figures


async def main() -> None:
    options = arguments(__doc__, sizes="5000,15000,50000", views=",".join(fold_services()), one="", home="")
    if options.one:
        await one(options.home, options.one)
        return
    figures = {}
    for size in options.sizes.split(","):
        figures[size] = await measured(options.data, int(size), options.views.split(","))
    keep("rebuild", {"at": figures})


if __name__ == "__main__":
    asyncio.run(main())
