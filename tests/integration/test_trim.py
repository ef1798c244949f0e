"""The log is trimmed to a tail, and everything that asks for the past still gets it: with a real server."""

from __future__ import annotations

import shutil

import pytest

from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.client import Memory
from lamina.config import BusConfig, Config, Keep
from lamina.home import Home
from lamina.rebuild.home import connected
from lamina.runtime import trim as trimming
from lamina.runtime.registry import fold_services
from lamina.runtime.trim import cut_at, trim
from lamina.verify.run import verify
from tests.support.mixed import SPACE, folded, spoken
from tests.support.toy import until
from tests.support.whole import daemon, texts


async def test_the_daemon_keeps_a_tail_and_forgets_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is trimmed by itself; then every view is deleted, and recall finds the oldest turn."""
    monkeypatch.setattr(trimming, "EVERY_S", 0.05)
    said = [f"turn {n} about the number {n * 7919}" for n in range(300)]
    config = Config(bus=BusConfig(keep="1 KiB"))
    async with daemon(home, config), Memory.open(space="alice", home=home.path) as memory:
        for text in said:
            await memory.turn("user", text, session="s1")
        await memory.settled()
        async with connected(home) as bus:

            async def few() -> bool:
                return (await bus.info()).messages < 20

            await until(few)
            shutil.rmtree(home.space("alice") / "views")
            await memory.settled()
            hits = await memory.recall("7919", deadline_s=20, limit=1)
            found = await verify(home, bus, ["alice"])

    assert [item.text for item in hits.items] == [said[1]]
    assert found.findings == ()
    assert [text for text in texts(home, "alice") if text] == said


async def test_what_the_ledger_does_not_hold_stays_in_the_log(home: Home) -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await folded(home, log)
    ledger = next((home.spaces / SPACE / "log").glob("*.jsonl"))
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:5] + lines[6:]))

    done = await trim(home, bus, [SPACE], tuple(fold_services()), 30)

    seqs = [seq for seq, one in log.messages.items() if one.subject.startswith("lamina.ev.")]
    assert "not in the ledger" in done[0].why
    assert done[0].seq == min(seqs) - 1 == 5
    (home.spaces / SPACE / "blobs").rename(home.path / "away")
    assert (await trim(home, bus, [SPACE], tuple(fold_services()), 30))[0].seq == 5


async def test_nothing_goes_that_a_service_has_not_folded(home: Home) -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await spoken(bus)
    await folded(home, log)
    (home.run / "offload.db").unlink()

    done = await trim(home, bus, [SPACE], tuple(fold_services()), 30)

    assert (done[0].seq, done[0].removed) == (0, 0)
    assert "offload has folded up to 0" in done[0].why


async def test_where_a_policy_cuts(home: Home) -> None:
    now = [1_000_000]
    log = MemoryLog(now_us=lambda: now[0])
    bus = MemoryBus(log)
    for day in range(10):
        now[0] = day * 86_400_000_000
        await bus.publish("lamina.ev.1.alice.turn-recorded", b"x" * 1_000)

    assert await cut_at(bus, Keep(size_bytes=1 << 30)) == 0
    assert await cut_at(bus, Keep(size_bytes=3_500)) == 7
    assert await cut_at(bus, Keep(seconds=3 * 86_400), now_us=now[0]) == 6
    assert await cut_at(bus, Keep(seconds=30 * 86_400), now_us=now[0]) == 0
