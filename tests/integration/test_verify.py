"""Verification finds what was damaged, names what heals it, and finds nothing in a home that is whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Conflict
from lamina.home import Home
from lamina.rebuild.home import chosen_views
from lamina.rebuild.ledger import mend
from lamina.rebuild.view import rebuild_view
from lamina.runtime.history import mark_trimmed
from lamina.runtime.refill import refill
from lamina.runtime.registry import fold_services
from lamina.store.driver import connect
from lamina.verify.digests import digest
from lamina.verify.records import Finding
from lamina.verify.run import verify
from tests.support.mixed import SPACE, files, folded, spoken


class Whole:
    """A home that is whole, to be damaged."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.log = MemoryLog()
        self.bus = MemoryBus(self.log)
        self.root = home.spaces / SPACE

    async def filled(self) -> Whole:
        await spoken(self.bus)
        await folded(self.home, self.log)
        return self

    async def found(self) -> list[Finding]:
        return list((await verify(self.home, self.bus, [SPACE])).findings)

    async def kinds(self) -> set[str]:
        return {one.what for one in await self.found()}

    async def healed(self) -> None:
        await mend(self.bus, self.home, SPACE)
        for name in chosen_views([]):
            await rebuild_view(fold_services()[name], self.bus, self.home, SPACE, lambda _: None)

    def digests(self) -> dict[str, dict[str, str]]:
        return {name: digest(self.root / "views" / f"{name}.db") for name in fold_services()}

    def first(self, pattern: str) -> Path:
        return sorted(self.root.glob(pattern))[0]


@pytest.fixture
async def whole(home: Home) -> Whole:
    return await Whole(home).filled()


async def test_a_whole_home_has_nothing_to_find_and_is_left_alone(whole: Whole) -> None:
    before = files(whole.root)

    assert await whole.found() == []
    assert files(whole.root) == before


async def test_a_rebuild_changes_nothing_of_a_whole_home(whole: Whole) -> None:
    before, digests = files(whole.root), whole.digests()

    await whole.healed()

    assert files(whole.root) == before
    assert whole.digests() == digests


def drop_line(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5] + lines[6:]))


def swap_lines(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], lines[6], lines[5], *lines[7:]]))


def repeat_line(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], lines[4], *lines[5:]]))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0x01
    path.write_bytes(bytes(raw))


DAMAGES = {
    "dropped line": ("log/*.jsonl", drop_line, {"ledger.missing"}),
    "swapped lines": ("log/*.jsonl", swap_lines, {"ledger.order", "ledger.missing"}),
    "repeated line": ("log/*.jsonl", repeat_line, {"ledger.order"}),
    "cut ledger": ("log/*.jsonl", cut, {"ledger.missing"}),
    "deleted ledger": ("log/*.jsonl", Path.unlink, {"ledger.missing"}),
    "flipped blob": ("blobs/*", flip, {"blob.damaged"}),
    "deleted blob": ("blobs/*", Path.unlink, {"blob.missing"}),
    "flipped reference": ("refs/*", flip, {"file.differs"}),
    "deleted canvas": ("canvas/*", Path.unlink, {"file.differs"}),
    "cut view": ("views/offload.[0-9].db", cut, {"view.damaged"}),
    "deleted view": ("views/journal.db", Path.unlink, {"view.missing"}),
}


@pytest.mark.parametrize(("pattern", "damage", "kinds"), DAMAGES.values(), ids=DAMAGES)
async def test_damage_is_found_and_healed(whole: Whole, pattern: str, damage: object, kinds: set[str]) -> None:
    before, digests = files(whole.root), whole.digests()
    assert callable(damage)
    damage(whole.first(pattern))

    found = await whole.found()

    assert {one.what for one in found} >= kinds
    assert all(one.heal.startswith("lamina replay rebuild") for one in found)
    await whole.healed()
    assert await whole.found() == []
    assert files(whole.root) == before
    assert whole.digests() == digests


async def test_a_row_changed_by_hand_is_found(whole: Whole) -> None:
    db = connect(whole.root / "views" / "journal.db", readonly=False)
    db.execute("UPDATE turns SET text = 'changed' WHERE seq = (SELECT min(seq) FROM turns)")
    db.close()

    found = await whole.found()

    assert [(one.what, one.where) for one in found] == [("view.differs", "views/journal.db: turns")]
    assert found[0].heal == "lamina replay rebuild journal --space alice"


async def test_what_stands_in_the_ledger_alone_is_said(whole: Whole) -> None:
    digests = whole.digests()
    await whole.bus.erase(7)

    found = await whole.found()

    assert [one.heal for one in found if one.what == "log.missing"] == ["lamina replay rebuild ledger --space alice"]
    await whole.healed()
    assert await whole.found() == []
    assert whole.digests() == digests


async def test_what_neither_log_nor_ledger_holds_is_said_to_be_gone(whole: Whole) -> None:
    await whole.bus.erase(7)
    path = whole.first("log/*.jsonl")
    path.write_bytes(b"".join(raw for raw in path.read_bytes().splitlines(keepends=True) if b'{"seq":7,' not in raw))

    lost = [one for one in await whole.found() if one.lost]

    assert [(one.what, one.where) for one in lost] == [("event.lost", "views/journal.db")]
    assert "event 7 " in lost[0].detail


async def test_a_line_is_missed_where_the_log_was_to_be_trimmed_and_was_not(whole: Whole) -> None:
    mark_trimmed(whole.root, whole.log.epoch, 20)  # as one leaves it that ended before it purged
    drop_line(whole.first("log/*.jsonl"))

    assert "ledger.missing" in await whole.kinds()
    await whole.healed()
    assert await whole.found() == []


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"", b"another"], ids=["no text", "empty", "another"])
async def test_a_damaged_epoch_is_told_by_the_lines(whole: Whole, damage: bytes) -> None:
    before, messages = files(whole.root), dict(whole.log.messages)
    (whole.root / "log" / "epoch").write_bytes(damage)

    found = await whole.found()

    assert [(one.what, one.heal) for one in found] == [("ledger.epoch", "lamina replay rebuild ledger --space alice")]
    await whole.healed()
    assert files(whole.root) == before
    (whole.root / "log" / "epoch").write_bytes(damage)
    assert await refill(whole.home, whole.bus) == []
    assert files(whole.root) == before
    assert whole.log.messages == messages


async def test_the_ledger_of_another_log_is_not_mixed_with_this_one(whole: Whole) -> None:
    before = files(whole.root)
    whole.log.refill()
    await spoken(whole.bus, start=100)

    found = [one for one in await whole.found() if one.what.startswith("ledger.")]

    assert [(one.what, one.heal) for one in found] == [("ledger.epoch", "lamina up --space alice")]
    with pytest.raises(Conflict, match="restart the daemon"):
        await mend(whole.bus, whole.home, SPACE)
    assert files(whole.root) == before


async def test_a_damaged_mark_is_a_finding_and_names_what_heals_it(whole: Whole) -> None:
    (whole.root / "log" / "trimmed").write_bytes(b"\xff")

    assert [(one.what, one.heal) for one in await whole.found()] == [
        ("ledger.mark", "lamina replay rebuild ledger --space alice")
    ]
    await whole.healed()
    assert await whole.found() == []


async def test_files_that_nothing_made_are_orphans(whole: Whole) -> None:
    for name in ("refs/stranger.md", f"blobs/{'0' * 64}"):
        (whole.root / name).write_bytes(b"x")
        os.utime(whole.root / name, (0, 0))

    found = await whole.found()

    assert {one.what for one in found} == {"file.orphan", "blob.orphan"}
    assert all(one.heal.startswith("rm ") for one in found)
