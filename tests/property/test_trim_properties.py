"""Wherever and whenever the log is trimmed, nobody sees a seam: views, ledger and verification are as without it."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.home import Home
from lamina.rebuild.view import rebuild_view
from lamina.runtime.history import history, trimmed
from lamina.runtime.registry import fold_services
from lamina.runtime.trim import trim
from lamina.verify.digests import digest
from lamina.verify.run import verify
from tests.support.mixed import SPACE, files, folded, spoken

MARK = "log/trimmed"
cuts = st.lists(st.integers(0, 60), min_size=1, max_size=3)


def digests(home: Home) -> dict[str, dict[str, str]]:
    return {name: digest(home.spaces / SPACE / "views" / f"{name}.db") for name in fold_services()}


async def rebuilt(home: Home, bus: MemoryBus) -> None:
    for service in fold_services().values():
        await rebuild_view(service, bus, home, SPACE, lambda _: None)


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(cuts=cuts, lost=st.booleans())
def test_random_trims_leave_no_seam(cuts: list[int], lost: bool) -> None:
    asyncio.run(trimmed_everywhere(cuts, lost))


async def trimmed_everywhere(cuts: list[int], lost: bool) -> None:
    """Trim at every cut, with more said in between; `lost`: the mark of the trim is deleted before the rebuild."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        home.prepare()
        log = MemoryLog()
        bus = MemoryBus(log)
        expected = 0
        for n, cut in enumerate(cuts):
            await spoken(bus, 20, start=n * 20)
            await folded(home, log)
            await trim(home, bus, [SPACE], tuple(fold_services()), cut)
            expected = max(expected, min(cut, log.last_seq - 1))
        wanted, said = digests(home), files(home.spaces / SPACE)
        held = trimmed(home.spaces / SPACE, log.epoch)
        assert held == expected
        assert all(seq > held for seq, one in log.messages.items() if one.subject.startswith("lamina.ev."))
        assert await bus.last("lamina.ev.>") is not None
        if lost:
            (home.spaces / SPACE / MARK).unlink(missing_ok=True)
        else:
            assert (await verify(home, bus, [SPACE])).findings == ()

        await rebuilt(home, bus)

        assert digests(home) == wanted
        said.pop(MARK, None)
        now = files(home.spaces / SPACE)
        now.pop(MARK, None)
        assert now == said


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(1, 45), min_size=1, max_size=4), batch=st.integers(1, 9))
def test_a_log_that_is_trimmed_while_it_is_read_has_no_hole(cuts: list[int], batch: int) -> None:
    asyncio.run(trimmed_while_read(cuts, batch))


async def trimmed_while_read(cuts: list[int], batch: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        home.prepare()
        log = MemoryLog()
        bus = MemoryBus(log)
        await spoken(bus, 30)
        await folded(home, log)
        wanted = {seq for seq, one in log.messages.items() if one.subject.startswith("lamina.ev.")}
        repeated = {
            seq for seq in wanted if seq - 1 in wanted and log.messages[seq].data == log.messages[seq - 1].data
        }
        seen: list[int] = []
        left = iter(cuts)
        async for messages in history(bus, home.spaces / SPACE, after=0, until=1 << 62, name="t", batch=batch):
            seen += [message.seq for message in messages]
            await trim(home, bus, [SPACE], tuple(fold_services()), next(left, 0))

        assert seen == sorted(set(seen))
        assert len(repeated) == 1
        assert wanted - set(seen) <= repeated, "a repetition has no line of its own; nothing else is missing"
