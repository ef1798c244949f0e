"""What a rebuild costs those who use the memory meanwhile: 200 events/s arrive, recalls run, every view is made anew.

Recall times before and during the rebuild; none may fail, and none may see less than one before it saw.

usage: python -m benchmarks.rebuild_live [--events 20000] [--rate 200]
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from itertools import cycle
from typing import Any

from benchmarks.common import arguments, bus, daemon, keep, quantiles, real_turns
from benchmarks.rebuild import SPACE, publish
from lamina.client import Memory
from lamina.home import Home

BEFORE_S = 10.0


class Asked:
    """Recalls, one after the other: their times, failures, and whether the position ever went back."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.failed = 0
        self.went_back = 0
        self._seq = 0

    async def ask(self, memory: Memory, stop: asyncio.Event) -> None:
        words = cycle(("database", "holiday in Busan", "error in the test", "birthday", "recipe with tofu"))
        while not stop.is_set():
            start = time.perf_counter()
            hits = await memory.recall(next(words), deadline_s=5.0)
            self.seconds.append(time.perf_counter() - start)
            self.failed += hits.status == "unavailable"
            self.went_back += hits.as_of_seq < self._seq
            self._seq = hits.as_of_seq

    def figures(self) -> dict[str, Any]:
        return {**quantiles(self.seconds), "failed": self.failed, "went_back": self.went_back}


async def arrive(memory: Memory, texts: list[tuple[str, str, str]], rate: int, stop: asyncio.Event) -> int:
    """Turns at `rate` a second until `stop`; how many."""
    start, count = time.monotonic(), 0
    while not stop.is_set():
        session, role, text = texts[count % len(texts)]
        await memory.turn(role, text, session=f"live {session}")
        count += 1
        await asyncio.sleep(max(0.0, start + count / rate - time.monotonic()))
    return count


async def during(home: Home, options: Any, work: Any) -> dict[str, Any]:
    """Figures of recalls and arrivals while `work` runs."""
    texts = [one for one in real_turns(options.data)[:5_000] if len(one[2]) < 2_000]
    async with (
        Memory.open(space=SPACE, home=home.path) as writer,
        Memory.open(space=SPACE, home=home.path) as reader,
    ):
        stop, asked, start = asyncio.Event(), Asked(), time.monotonic()
        async with asyncio.TaskGroup() as group:
            arrived = group.create_task(arrive(writer, texts, options.rate, stop))
            group.create_task(asked.ask(reader, stop))
            result = await work()
            stop.set()
        seconds = time.monotonic() - start
    return {
        "recalls": asked.figures(),
        "arrived_per_s": round(arrived.result() / seconds, 1),
        "seconds": round(seconds, 1),
        "rebuilt": result,
    }


async def rebuilt(home: Home) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "replay", "rebuild", "--json"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=os.environ)
    out, _ = await process.communicate()
    found = [json.loads(line) for line in out.splitlines()]
    return [{key: one[key] for key in ("service", "events", "seconds", "rate")} for one in found]


async def main() -> None:
    options = arguments(__doc__, events=20_000, rate=200)
    async with daemon("journal,offload,query,vectors") as (home, _):
        link = await bus(home)
        await publish(link, options.data, options.events)
        await link.close()
        async with Memory.open(space=SPACE, home=home.path) as memory:
            await memory.settled(1_200, layers=["journal", "offload", "vectors"])
        before = await during(home, options, lambda: asyncio.sleep(BEFORE_S))
        live = await during(home, options, lambda: rebuilt(home))
    keep("rebuild_live", {"events": options.events, "rate": options.rate, "before": before, "during": live})


if __name__ == "__main__":
    asyncio.run(main())
