"""The bus under random kills and freezes: every accepted message once, in its client's order, and read so."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from pathlib import Path

import pytest

from lamina.bus import Bus
from lamina.bus.local import local_bus
from lamina.bus.nats import connect
from lamina.bus.server import Server
from lamina.errors import Timeout, Transient, Unavailable

RUNS = int(os.environ.get("LAMINA_FAULTS", "10"))
CLIENTS = 3
MESSAGES = 30


async def client(bus: Bus, number: int, published: asyncio.Event) -> list[int]:
    """Publish in order, each until it is accepted; the positions it was given."""
    positions = []
    for n in range(MESSAGES):
        subject, id = f"lamina.ev.{number}.space.turn-recorded", f"{number}-{n}"
        while True:
            try:
                ack = await bus.publish(subject, id.encode(), id=id, timeout_s=0.5)
            except (Unavailable, Timeout):
                await asyncio.sleep(0.01)  # as a client backs off
            else:
                break
        positions.append(ack.seq)
        published.set()
    return positions


async def trouble(rng: random.Random, server: Server, published: asyncio.Event) -> None:
    """Now and then, after some messages more, kill the server or let it stand still for a moment."""
    while True:
        for _ in range(rng.randint(1, 40)):
            published.clear()
            await published.wait()
        pid = server.pid
        if pid is None:
            continue
        with contextlib.suppress(ProcessLookupError):  # it has just died of the last one
            if rng.random() < 0.5:
                os.kill(pid, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGSTOP)
                await asyncio.sleep(rng.choice([0.0, 0.05, 0.7]))
                os.kill(pid, signal.SIGCONT)


async def follow(bus: Bus, number: int, rng: random.Random) -> list[tuple[int, bytes]]:
    """Read one client's messages, through a new reader now and then, as after a rebalance."""
    found: list[tuple[int, bytes]] = []
    while len(found) < MESSAGES:
        after = found[-1][0] if found else 0
        reader = bus.read([f"lamina.ev.{number}.>"], after=after, name=f"follow-{number}")
        for _ in range(rng.randint(1, 20)):
            if len(found) == MESSAGES:
                break
            try:
                found += [(m.seq, m.data) for m in await reader.fetch(rng.randint(1, 10), 0.2)]
            except Transient:
                continue
        await reader.close()
    return found


@pytest.mark.parametrize("seed", range(RUNS))
async def test_accepted_is_stored_once_and_in_order(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.bus.server.BACK_OFF_S", (0.02,) * 99)
    rng = random.Random(seed)
    async with local_bus(tmp_path, max_bytes=64 * 1024 * 1024) as (server, bus):
        clients = [await connect(server.url, credentials=server.credentials) for _ in range(CLIENTS)]
        published = asyncio.Event()
        harm = asyncio.create_task(trouble(rng, server, published))
        async with asyncio.timeout(60):
            read, positions = await asyncio.gather(
                asyncio.gather(*(follow(bus, n, random.Random(seed + n)) for n in range(CLIENTS))),
                asyncio.gather(*(client(one, n, published) for n, one in enumerate(clients))),
            )
        harm.cancel()
        with contextlib.suppress(asyncio.CancelledError):  # it may just have ended by itself; an error is raised
            await harm
        for one in clients:
            await one.close()

    for number in range(CLIENTS):
        ids = [f"{number}-{n}".encode() for n in range(MESSAGES)]
        assert read[number] == list(zip(positions[number], ids, strict=True)), f"seed {seed}"
