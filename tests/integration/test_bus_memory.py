"""The log in memory: its switches, and that it behaves like the real one whatever is done to both."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lamina.bus import Ack, Bus, Message, Outgoing, Reader
from lamina.bus.local import local_bus
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Conflict, LaminaError, LogFull, Timeout, Unavailable

SUBJECT = "lamina.ev.7.alice.turn-recorded"


async def test_down_is_unavailable_and_loses_nothing() -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    reader = bus.read([SUBJECT], after=0, name="r")
    await bus.publish(SUBJECT, b"1")
    log.down = True

    assert not bus.connected
    with pytest.raises(Unavailable):
        await bus.publish(SUBJECT, b"2")
    with pytest.raises(Unavailable):
        await reader.fetch(1, 0.01)
    waiting = asyncio.create_task(reader.fetch(5, 60))
    await asyncio.sleep(0)
    log.down = False
    assert [m.seq for m in await waiting] == [1]


async def test_a_lost_ack_is_a_timeout_of_something_stored() -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    log.lose_acks = 1
    with pytest.raises(Timeout):
        await bus.publish(SUBJECT, b"1", id="a")

    assert await bus.publish(SUBJECT, b"1", id="a") == Ack(1, duplicate=True)


async def test_full() -> None:
    bus = MemoryBus(MemoryLog(max_bytes=1000))
    await bus.publish(SUBJECT, b"x" * 500)
    with pytest.raises(LogFull):
        await bus.publish(SUBJECT, b"x" * 500)
    with pytest.raises(LogFull):
        await bus.publish_batch([Outgoing(SUBJECT, b"x" * 200)] * 3)
    await bus.erase(1)

    assert (await bus.publish(SUBJECT, b"x" * 500)).seq == 2


async def test_a_refilled_log_is_a_conflict_for_its_readers() -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    reader = bus.read([SUBJECT], after=0, name="r")
    log.refill()
    with pytest.raises(Conflict, match="epoch"):
        await reader.fetch(1, 1)


async def _fetched(reader: Reader) -> list[tuple[int, str, bytes, object]]:
    found: list[Message] = []
    while batch := await reader.fetch(5, 0.1):
        found += batch
    return [(m.seq, m.subject, m.data, m.headers) for m in found]


def _step(rng: random.Random) -> Callable[[Bus, Reader], Awaitable[object]]:
    """One thing to do to a bus, drawn once and done to both."""
    subject = rng.choice(["lamina.ev.1.a.k", "lamina.ev.1.b.k", "lamina.ev.2.a.k", "lamina.blob.1.a.0"])
    messages = [
        Outgoing(rng.choice([subject, "lamina.ev.1.a.k"]), rng.randbytes(rng.choice([0, 9, 3000])), id, headers)
        for id, headers in [
            (rng.choice([None, *"pqrstuvw"]), rng.choice([None, {"A": "b"}])) for _ in range(rng.randint(1, 4))
        ]
    ]
    one, seq = messages[0], rng.randint(0, 30)
    pattern = rng.choice([subject, "lamina.ev.*.a.*", "lamina.>", "lamina.ev.9.>"])

    def plain(message: Message | None) -> object:
        return message and (message.seq, message.subject, message.data, message.headers)

    async def info(bus: Bus) -> object:
        found = await bus.info()
        return found.first_seq, found.last_seq, found.messages

    async def got(call: Awaitable[Message | None]) -> object:
        return plain(await call)

    steps: list[Callable[[Bus, Reader], Awaitable[object]]] = [
        lambda bus, _: bus.publish(one.subject, one.data, id=one.id, headers=one.headers),
        lambda bus, _: bus.publish_batch(messages),
        lambda bus, _: bus.erase(seq),
        lambda bus, _: got(bus.get(seq)),
        lambda bus, _: got(bus.last(pattern)),
        lambda bus, _: got(bus.next(pattern, seq)),
        lambda bus, _: info(bus),
    ]
    return rng.choices([*steps, lambda _, reader: _fetched(reader)], [8, 4, 2, 2, 2, 2, 1, 0.3])[0]


async def _outcome(call: Awaitable[object]) -> object:
    try:
        return await call
    except LaminaError as error:
        return type(error)


@pytest.mark.parametrize("seed", range(4))
async def test_it_behaves_like_the_real_one(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    async with local_bus(tmp_path, max_bytes=64 * 1024 * 1024) as (_, real):
        memory = MemoryBus(MemoryLog())
        buses: list[Bus] = [memory, real]
        readers = [bus.read(["lamina.ev.1.>", "lamina.blob.>"], after=0, name="both") for bus in buses]
        for n in range(120):
            step = _step(rng)
            in_memory, in_truth = [
                await _outcome(step(bus, reader)) for bus, reader in zip(buses, readers, strict=True)
            ]
            assert in_memory == in_truth, f"seed {seed}, step {n}"
        assert await _fetched(readers[0]) == await _fetched(readers[1])
        assert readers[0].pending == readers[1].pending == 0
