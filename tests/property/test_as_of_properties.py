"""The memory as of a moment is that of a home which had heard no more by then, whatever was said or undone."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina import events
from lamina.bus import Message
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.bus.port import Outgoing
from lamina.embedding import Embedding
from lamina.home import Home
from lamina.query.past import Pasts
from lamina.records import AsOf
from lamina.runtime.registry import fold_services
from lamina.times import from_micros, micros
from lamina.verify.digests import digest
from tests.property.test_atoms_properties import STEPS, taken
from tests.support.atoms import START_US, AtomsBench
from tests.support.mixed import folded

SPACE = "alice"
HOUR_US = 3_600_000_000


async def past(home: Home, log: MemoryLog, as_of: AsOf) -> dict[str, dict[str, str]]:
    """Digests of every view as of then."""
    pasts = Pasts(MemoryBus(log), home, Embedding(None))
    try:
        async with pasts.hold(SPACE, as_of, tuple(fold_services()), log.last_seq, wait_s=60) as then:
            return {name: digest(then.positions.link(SPACE, name)) for name in fold_services()}
    finally:
        await pasts.close()


async def heard(folder: Path, messages: list[Message]) -> dict[str, dict[str, str]]:
    """Digests of the views of a home that heard these alone, at the same times; without any, of none."""
    now = [0]
    log = MemoryLog(now_us=lambda: now[0])
    home = Home(folder)
    home.prepare()
    for message in messages:
        log.last_seq, now[0] = message.seq - 1, message.at_us
        log.append(Outgoing(message.subject, message.data))
    if not messages:
        return {}
    await folded(home, log, SPACE)
    return {name: digest(home.spaces / SPACE / "views" / f"{name}.db") for name in fold_services()}


async def life(home: Home, steps: list[tuple[Any, ...]]) -> AtomsBench:
    atoms = AtomsBench(home)
    said: list[str] = []
    for step in steps:
        await taken(atoms, step, said)
    await atoms.run()
    return atoms


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=2, max_size=14), share=st.floats(0, 1))
def test_as_of_a_position_is_a_home_that_heard_so_far(steps: list[tuple[Any, ...]], share: float) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder) / "home")
            home.prepare()
            atoms = await life(home, [("say", "home=Seoul", "s1", 1.0), *steps])
            seq = round(share * atoms.log.last_seq)
            until = [one for one in atoms.log.messages.values() if one.seq <= seq]

            found = await past(home, atoms.log, AsOf(seq=seq))

            wanted = await heard(Path(folder) / "other", until)
            assert not wanted or found == wanted

    asyncio.run(run())


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(
    said=st.lists(st.tuples(st.integers(-50, 50), st.sampled_from(["s1", "s2"])), min_size=1, max_size=12),
    hours=st.integers(-55, 55),
)
def test_as_of_a_time_is_a_home_that_heard_what_had_happened(said: list[tuple[int, str]], hours: int) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder) / "home")
            home.prepare()
            atoms = AtomsBench(home)
            for n, (hour, session) in enumerate(said):
                await atoms.say(f"note {n}", session=session, at_us=START_US + hour * HOUR_US)
            then_us = START_US + hours * HOUR_US
            until = [one for one in atoms.log.messages.values() if when_us(one) <= then_us]

            found = await past(home, atoms.log, AsOf(time=from_micros(then_us)))

            wanted = await heard(Path(folder) / "other", until)
            assert not wanted or found == wanted

    asyncio.run(run())


def when_us(message: Message) -> int:
    return micros(events.decode(message.data).when)
