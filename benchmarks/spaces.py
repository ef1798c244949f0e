"""Ten thousand spaces in one home: descriptors, memory, disk, and how long it takes to open one that nobody used.

Every space gets a few turns through the log; then spaces drawn at random are recalled from and written to for the
first time since their views were closed. `--services` limits what the daemon runs (all: as installed).

    python -m benchmarks.spaces [--spaces 10000] [--turns 3] [--services journal,query]
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.common import arguments, bus, daemon, keep, quantiles, rss_mb, tree_bytes
from lamina import events, ids, times
from lamina.bus.nats import NatsBus
from lamina.bus.port import Outgoing
from lamina.events import TurnRecorded
from lamina.home import Home
from lamina.requests import Recall
from lamina.runtime.membership import heartbeats

BATCH = 500
COLD = 200
LOOK_S = 0.5


def message(space: str, n: int) -> Outgoing:
    data = TurnRecorded(role="user", text=f"turn {n} of {space}: the ledger of harbour {n * 7919 % 1000}")
    event = events.make(
        data, id=f"{space}-{n}", space=space, session="s", time=times.from_micros(1_764_000_000_000_000)
    )
    return Outgoing(ids.event_subject(ids.token(space), event.type), events.encode(event))


class Most:
    """What the daemon needs at most, looked at while it works."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.fds = self.threads = 0
        self.rss_mb = 0.0

    def look(self) -> None:
        self.fds = max(self.fds, len(os.listdir(f"/proc/{self.pid}/fd")))  # noqa: PTH208 - numbers, not paths
        status = Path(f"/proc/{self.pid}/status").read_text()
        threads = next(line for line in status.splitlines() if line.startswith("Threads:"))
        self.threads = max(self.threads, int(threads.split()[1]))
        self.rss_mb = max(self.rss_mb, rss_mb(self.pid))

    async def looking(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def figures(self) -> dict[str, Any]:
        return {"descriptors": self.fds, "threads": self.threads, "rss_mb": self.rss_mb}


async def folded(home: Home, last_seq: int) -> None:
    """Wait until every worker is at the end of the log."""
    while True:
        beats = [beat for beat in heartbeats(home) if beat.state != "serving"]
        if beats and all(beat.position >= last_seq and not beat.pending for beat in beats):
            return
        await asyncio.sleep(LOOK_S)


async def recall_s(connection: NatsBus, space: str) -> float:
    """Of a first recall in a space: a plain request, so that no client's start counts."""
    token = ids.token(space)
    request = msgspec.json.encode(Recall(query="harbour ledger", limit=8, deadline_s=10.0))
    started = time.perf_counter()
    await connection.request(f"{ids.SUBJECT_ROOT}.rpc.{ids.lane(token)}.{token}.recall", request, timeout_s=15.0)
    return time.perf_counter() - started


async def write_s(connection: NatsBus, space: str, n: int) -> float:
    """From publishing a turn to hearing that the journal of its space has it."""
    applied = asyncio.Event()
    listening = await connection.listen(ids.applied_subject(ids.token(space), "journal"), lambda *_: applied.set())
    one = message(space, n)
    started = time.perf_counter()
    await connection.publish(one.subject, one.data)
    async with asyncio.timeout(30):
        await applied.wait()
    taken = time.perf_counter() - started
    await listening.close()
    return taken


async def main() -> None:
    options = arguments(__doc__, spaces=10_000, turns=3, services="")
    spaces = [f"space-{n}" for n in range(options.spaces)]
    async with daemon(options.services) as (home, pid):
        connection = await bus(home)
        most, started = Most(pid), time.perf_counter()
        most.look()
        idle = most.figures()
        looking = asyncio.create_task(most.looking())
        for at in range(0, len(spaces), BATCH // options.turns):
            part = spaces[at : at + BATCH // options.turns]
            await connection.publish_batch([message(space, n) for space in part for n in range(options.turns)])
        published_s = time.perf_counter() - started
        last = (await connection.info()).last_seq
        await folded(home, last)
        folded_s = time.perf_counter() - started
        rng = random.Random(7)
        cold = rng.sample(spaces[: -len(spaces) // 3], min(2 * COLD, len(spaces) // 3))
        recalls = [await recall_s(connection, space) for space in cold[::2]]
        writes = [await write_s(connection, space, options.turns) for space in cold[1::2]]
        warm = [await recall_s(connection, cold[-1]) for _ in range(100)]
        looking.cancel()
        most.look()
        keep(
            "spaces",
            {
                "spaces": options.spaces,
                "events": last,
                "services": options.services or "all",
                "publish_s": round(published_s, 1),
                "folded_s": round(folded_s, 1),
                "first_turns_per_s": round(last / folded_s, 1),
                "idle_daemon": idle,
                "most": most.figures(),
                "disk_per_space_kib": round(tree_bytes(home.spaces) / len(spaces) / 1024, 1),
                "cold_recall": quantiles(recalls),
                "cold_write_to_applied": quantiles(writes),
                "warm_recall": quantiles(warm),
            },
        )
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
