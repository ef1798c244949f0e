"""How soon does `lamina up` accept, what does an idle daemon hold in memory, what does a turn cost on disk?

usage: python -m benchmarks.start_and_size [--rounds 5]
"""

from __future__ import annotations

import asyncio
import statistics
import time
from itertools import islice
from pathlib import Path

from benchmarks.common import arguments, daemon, keep, real_turns, rss_mb, tree_bytes
from lamina.client import Memory

TURNS = 5_000
SPACE = "bench"


def server_pid(daemon_pid: int) -> int:
    """The nats-server child of a daemon."""
    children = Path(f"/proc/{daemon_pid}/task/{daemon_pid}/children").read_text().split()
    return int(children[0])


def waiting(views: Path) -> int:
    """Bytes of the write-ahead logs: each at most 16 MB, whatever the view holds, and gone when it is closed."""
    return sum(path.stat().st_size for path in views.glob("*.db-*"))


async def start_s() -> float:
    start = time.perf_counter()
    async with daemon() as (home, _), Memory.open(space=SPACE, home=home.path) as memory:
        await memory.turn("user", "the first event", session="s")
        return time.perf_counter() - start


async def main() -> None:
    options = arguments(__doc__, rounds=5)
    await start_s()  # compiles what was not compiled yet, as installing does
    starts = [await start_s() for _ in range(options.rounds)]
    async with daemon() as (home, pid):
        async with Memory.open(space=SPACE, home=home.path) as memory:
            await memory.turn("user", "one event", session="s")
            await memory.settled()
            idle = {"daemon_mb": rss_mb(pid), "nats_server_mb": rss_mb(server_pid(pid))}
            turns = list(islice(real_turns(options.data), TURNS))
            gate = asyncio.Semaphore(64)

            async def publish(session: str, role: str, text: str) -> None:
                async with gate:
                    await memory.turn(role, text or "-", session=session)

            await asyncio.gather(*(publish(*turn) for turn in turns))
            await memory.settled(600)
        space = home.space(SPACE)
        text = sum(len(text.encode()) for _, _, text in turns)
        disk = {
            "turns": TURNS,
            "text_bytes_per_turn": round(text / TURNS),
            "bus_bytes_per_turn": round(tree_bytes(home.bus / "jetstream") / TURNS),
            "ledger_bytes_per_turn": round(tree_bytes(space / "log") / TURNS),
            "views_bytes_per_turn": round((tree_bytes(space / "views") - waiting(space / "views")) / TURNS),
            "write_ahead_logs_of_open_views_mb": round(waiting(space / "views") / 1e6, 1),
        }
    figures = {
        "up_to_first_accepted_s": {
            "median": round(statistics.median(starts), 3),
            "all": [round(s, 3) for s in starts],
        },
        "idle_memory": idle | {"sum_mb": round(sum(idle.values()), 1)},
        "disk": disk,
    }
    keep("start_and_size", figures)


if __name__ == "__main__":
    asyncio.run(main())
