"""How much faster are two workers than one, on two cores, at a service that the processor limits?

A daemon that runs the query service alone is joined by one worker process, or by two that share the lanes. They are
stopped (SIGSTOP), the log is filled with many spaces, spread evenly, they go on at the same moment, and the time
until nothing is left to fold or decide counts. Every worker has one thread for its arithmetic. `--service atoms`
extracts with the built-in rules, `vectors` embeds with the packaged model, `journal` and `offload` fold.

    python -m benchmarks.workers [--service atoms] [--spaces 64] [--turns 150]
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, bus, keep, real_turns
from lamina import events, ids, times
from lamina.bus.nats import NatsBus
from lamina.bus.port import Outgoing
from lamina.config import Config
from lamina.daemon import scale
from lamina.events import SessionEnded, TurnRecorded
from lamina.home import Home
from lamina.ids import LANES
from lamina.runtime.lanes import owners, seat_key
from lamina.runtime.membership import Heartbeat, beats_of

BATCH = 200
LOOK_S = 0.02
START_US = 1_764_000_000_000_000
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def balanced(count: int) -> list[str]:
    """Names of spaces of which either of two workers gets half."""
    shares = owners([seat_key(0), seat_key(1)])
    wanted = Counter({owner: count // 2 for owner in set(shares.values())})
    names: list[str] = []
    n = 0
    while len(names) < count // 2 * 2:
        owner = shares[ids.lane(ids.token(f"space{n}"))]
        if wanted[owner]:
            wanted[owner] -= 1
            names.append(f"space{n}")
        n += 1
    return names


async def filled(connection: NatsBus, spaces: list[str], turns: list[tuple[str, str]]) -> int:
    """Every space says the same turns, and ends its session; how many events that are."""
    out: list[Outgoing] = []
    for space in spaces:
        for n, (role, text) in enumerate(turns):
            out.append(message(space, n, TurnRecorded(role=role, text=text)))
        out.append(message(space, len(turns), SessionEnded()))
    for at in range(0, len(out), BATCH):
        await connection.publish_batch(out[at : at + BATCH])
    return len(out)


def message(space: str, n: int, data: Any) -> Outgoing:
    event = events.make(
        data, id=f"{space}-{n}", space=space, session="s", time=times.from_micros(START_US + n * 1_000_000)
    )
    return Outgoing(ids.event_subject(ids.token(space), event.type), events.encode(event))


@contextlib.asynccontextmanager
async def up(folder: Path) -> AsyncIterator[Home]:
    """A daemon that runs the query service alone."""
    home = Home(folder)
    environment = os.environ | ONE_THREAD | {"LAMINA_DAEMON_SERVICES": "query"}
    command = [sys.executable, "-m", "lamina.cli", "--home", str(folder), "up"]
    process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=asyncio.subprocess.DEVNULL)
    try:
        while home.runtime() is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(LOOK_S)
        yield home
    finally:
        process.terminate()
        await process.wait()


async def joined(home: Home, service: str, workers: int) -> list[int]:
    """The processes of so many workers that share the lanes."""
    scale(home, Config(), service, workers)
    beats: list[Heartbeat] = []
    while len(beats) < workers or any(beat.lanes != LANES // workers for beat in beats):
        await asyncio.sleep(LOOK_S)
        beats = list(beats_of(home, service).values())
    return [beat.pid for beat in beats]


async def timed(home: Home, service: str, pids: list[int]) -> dict[str, Any]:
    """From when the workers go on until nothing is to be folded or decided, and each one's part."""
    started = time.perf_counter()
    send(pids, signal.SIGCONT)
    await asyncio.sleep(2.5)  # until they have said that there is something to do
    quiet_from = 0.0
    while True:
        await asyncio.sleep(LOOK_S)
        beats = list(beats_of(home, service).values())
        idle = all(beat.state == "following" and not beat.pending and not beat.due for beat in beats)
        if not idle:
            quiet_from = 0.0
        elif not quiet_from:
            quiet_from = time.perf_counter()
        elif time.perf_counter() - quiet_from > 3.0:  # a beat is a second old at most
            break
    return {
        "workers": len(pids),
        "seconds": round(quiet_from - started, 2),
        "applied": [beat.applied for beat in beats],
        "made": [beat.made for beat in beats],
    }


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)


async def main() -> None:
    options = arguments(__doc__, service="atoms", spaces=64, turns=150)
    turns = [(role, text) for _, role, text in real_turns(options.data)[: options.turns]]
    spaces = balanced(options.spaces)
    rows = []
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
        for workers in (1, 2):
            async with up(Path(folder) / f"with-{workers}") as home:
                connection = await bus(home)
                pids = await joined(home, options.service, workers)
                send(pids, signal.SIGSTOP)
                logged = await filled(connection, spaces, turns)
                rows.append(await timed(home, options.service, pids))
                await connection.close()
    keep(
        f"workers_{options.service}",
        {
            "service": options.service,
            "spaces": len(spaces),
            "events": logged,
            "runs": rows,
            "speed_up": round(rows[0]["seconds"] / rows[1]["seconds"], 2),
        },
    )


if __name__ == "__main__":
    asyncio.run(main())
