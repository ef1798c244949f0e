"""The memory as it was known at a position or a moment: a view folded up to there, and thrown away."""

from __future__ import annotations

from pathlib import Path

from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.home import Home
from lamina.runtime.history import seq_at
from lamina.runtime.registry import fold_services
from lamina.runtime.scratch import scratch
from lamina.runtime.trim import trim
from tests.support.mixed import SPACE, files, folded, spoken


async def test_a_past_view_says_what_was_known_then(home: Home, tmp_path: Path) -> None:
    now = [0]
    log = MemoryLog(now_us=lambda: now[0])
    bus = MemoryBus(log)
    for day in range(3):
        now[0] = (day + 1) * 1_000_000
        await spoken(bus, 10, start=day * 10)
    await folded(home, log)
    await trim(home, bus, [SPACE], tuple(fold_services()), 20)
    root = home.spaces / SPACE
    before = files(root)

    assert await seq_at(bus, root, 999_999) == 0
    assert await seq_at(bus, root, 3_000_000) == log.last_seq
    then = await seq_at(bus, root, 1_500_000)
    async with scratch(fold_services()["journal"], bus, root, tmp_path / "past") as past:
        await past.catch_up(then + 1)
        texts = await past.view.read(lambda db: [row[0] for row in db.execute("SELECT text FROM turns ORDER BY seq")])

    assert len(texts) == 11
    assert not any(text.endswith(" 10") for text in texts)
    assert files(root) == before
