"""Views and ledgers that are lost, damaged, stale or torn; many of them open at once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from typing import Any

import pytest

from lamina.runtime import Change, Recorded, Rows
from lamina.runtime.views import Views
from lamina.runtime.worker import touch_subject
from lamina.store.view import generation
from tests.support.bench import Bench
from tests.support.toy import (
    State,
    applied,
    dump,
    fold,
    ledger,
    rows,
    running,
    say,
    turn,
    until,
    view_file,
)


async def test_a_held_ledger_is_busy_and_nothing_is_torn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.runtime.files.LOCK_S", 0.02)
    monkeypatch.setattr("lamina.runtime.follower.RETRY_S", 0.01)
    await say(bench.bus, "first", id="a0")
    await bench.folded()
    handle = os.open(bench.home.spaces / "alice" / "log", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    worker = bench.worker()
    async with running(worker):
        await say(bench.bus, "second", id="a1")
        await until(lambda: worker.follower.errors >= 2)
        assert applied(bench.home) == 1
        os.close(handle)
        await until(lambda: applied(bench.home) == 2)

    assert ledger(bench.home).count(b"\n") == 2


async def test_a_new_version_is_built_beside_the_old_view(bench: Bench) -> None:
    for n in range(3):
        await say(bench.bus, f"word{n}", id=f"e{n}")
    await bench.folded()
    before = ledger(bench.home)
    path = view_file(bench.home)
    first = generation(path)
    seen: list[int] = []

    def slow(state: State, recorded: Recorded, rows_: Rows) -> tuple[State, Sequence[Change]]:
        seen.append(generation(path))
        assert len(rows(path, "SELECT seq FROM said")) == 3, "readers see the old view all the while"
        return fold(state, recorded, rows_)

    await say(bench.bus, "word3", id="e3")
    await bench.folded(version=2, fold=slow)

    assert seen[:3] == [first] * 3
    assert generation(path) > first
    assert [row[0] for row in rows(path, "SELECT seq FROM said")] == [1, 2, 3, 4]
    assert ledger(bench.home).startswith(before)
    assert ledger(bench.home).count(b"\n") == 4
    assert len([one for one in path.parent.glob("*.db") if not one.is_symlink()]) == 1


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "written"])
@pytest.mark.parametrize("loss", ["link", "file", "space", "views"])
async def test_a_deleted_view_is_made_again(bench: Bench, loss: str, idle: bool) -> None:
    await say(bench.bus, "word", id="e0")
    async with running(bench.worker()):
        await until(lambda: applied(bench.home) == 1)
        path = view_file(bench.home)
        wanted = dump(bench.home)
        root = path.parent.parent
        for victim in {
            "link": [path],
            "file": [path.resolve()],
            "views": list(path.parent.iterdir()),
            "space": [one for one in root.rglob("*") if not one.is_dir()],
        }[loss]:
            victim.unlink()
        if idle:
            await bench.bus.notify(touch_subject("toy", "alice"), b"")
            await until(lambda: applied(bench.home) == 1)
            assert dump(bench.home) == wanted
        else:
            await say(bench.bus, "more", id="e1")
            await until(lambda: applied(bench.home) == 2)
            assert len(dump(bench.home)["said"]) == 2
            assert ledger(bench.home).count(b"\n") == 2


@pytest.mark.parametrize(
    "damage", [b"", b"garbage" * 1000, "header", "tail"], ids=["empty", "garbage", "header", "tail"]
)
@pytest.mark.parametrize("open_", [True, False], ids=["open", "closed"])
async def test_a_damaged_view_is_made_again(bench: Bench, damage: bytes | str, open_: bool) -> None:
    for n in range(60):
        await say(bench.bus, f"word{n} " * 100, id=f"e{n}")
    await bench.folded()
    path = view_file(bench.home).resolve()
    wanted = dump(bench.home)

    def spoil() -> None:
        raw = path.read_bytes()
        for extra in path.parent.glob(f"{path.name}-*"):
            extra.unlink()
        if damage == "header":
            path.write_bytes(b"\0" * 100 + raw[100:])
        elif damage == "tail":
            path.write_bytes(raw[:4096] + os.urandom(len(raw) - 4096))
        else:
            assert isinstance(damage, bytes)
            path.write_bytes(damage)

    worker = bench.worker()
    if not open_:
        spoil()
    async with running(worker):
        if open_:
            await bench.bus.notify(touch_subject("toy", "alice"), b"")
            await until(lambda: worker._views.is_open("alice"))
            spoil()
        await bench.bus.notify(touch_subject("toy", "alice"), b"%d" % generation(view_file(bench.home)))
        await until(lambda: view_file(bench.home).exists() and view_file(bench.home).resolve() != path)
        await until(lambda: applied(bench.home) == 60)

    assert dump(bench.home) == wanted


async def test_a_report_of_damage_counts_for_the_generation_it_names_alone(bench: Bench) -> None:
    await say(bench.bus, "word", id="e0")
    worker = bench.worker()
    async with running(worker):
        await until(lambda: applied(bench.home) == 1)
        n = generation(view_file(bench.home))
        for payload in (b"%d" % (n + 1), b"-1", b"x", b"9" * 5_000, "٣".encode()):
            await bench.bus.notify(touch_subject("toy", "alice"), payload)
            await bench.bus.notify(touch_subject("toy", "no such space!"[:2]), payload)
            await say(bench.bus, "word", id=f"e{payload[:9]!r}")
        await until(lambda: applied(bench.home) == 6)

        assert generation(view_file(bench.home)) == n


async def test_views_long_unused_are_closed_and_opened_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.runtime.worker.most_views", lambda _: 4)
    worker = bench.worker()
    spaces = [f"space-{n}" for n in range(30)]
    open_ = 0
    async with running(worker):
        for round_ in range(2):
            for n, space in enumerate(spaces):
                await say(bench.bus, f"text {n}", id=f"{space}-{round_}", space=space)
            await until(lambda: worker.follower.position == bench.log.last_seq)
            open_ = max(open_, len(worker._views))

    assert open_ <= 4
    for space in spaces:
        assert len(rows(view_file(bench.home, space), "SELECT seq FROM said")) == 2


async def test_many_new_spaces_at_once_are_opened_few_at_a_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening: list[str] = []
    most: list[int] = []
    opened = Views[State]._opened

    async def counted(self: Views[State], space: str, until_: int) -> Any:
        opening.append(space)
        most.append(len(opening) + len(self))
        try:
            return await opened(self, space, until_)
        finally:
            opening.remove(space)

    monkeypatch.setattr("lamina.runtime.worker.most_views", lambda _: 8)
    monkeypatch.setattr(Views, "_opened", counted)
    for n in range(100):
        await say(bench.bus, "hello", id=f"e{n}", space=f"space-{n}")
    worker = bench.worker()
    async with running(worker):
        await until(lambda: worker.follower.position == 100)

    assert max(most) <= 8 + 8 + 1


async def test_a_torn_line_is_cut_and_a_surplus_line_adopted(bench: Bench) -> None:
    for n in range(3):
        await say(bench.bus, f"word{n}", id=f"e{n}")
    await bench.folded()
    wanted = ledger(bench.home)
    file = bench.home.spaces / "alice" / "log" / "words.jsonl"
    surplus = turn("word3", id="e3")[1]

    with file.open("ab") as handle:
        handle.write(b'{"seq":4,"event":%s}\n{"seq":5,"ev' % surplus)
    await say(bench.bus, "word3", id="e3")
    await bench.folded()

    assert ledger(bench.home) == wanted + b'{"seq":4,"event":%s}\n' % surplus
    assert len(dump(bench.home)["said"]) == 4


@pytest.mark.parametrize("running_", [True, False], ids=["running", "stopped"])
@pytest.mark.parametrize("cut", [1, 10, 10_000])
async def test_a_ledger_that_lost_its_end_is_made_whole(bench: Bench, cut: int, running_: bool) -> None:
    for n in range(4):
        await say(bench.bus, f"word{n}", id=f"e{n}")
    await bench.folded()
    wanted = ledger(bench.home)
    file = bench.home.spaces / "alice" / "log" / "words.jsonl"
    worker = bench.worker()
    async with running(worker):
        if running_:
            await bench.bus.notify(touch_subject("toy", "alice"), b"")
            await until(lambda: worker._views.is_open("alice"))
        os.truncate(file, max(0, len(wanted) - cut))
        await say(bench.bus, "word4", id="e4")
        await until(lambda: applied(bench.home) == 5)

    assert ledger(bench.home).startswith(wanted)
    assert ledger(bench.home).count(b"\n") == 5


async def test_a_ledger_changed_by_hand_stalls_its_space_and_says_so(bench: Bench) -> None:
    await say(bench.bus, "word", id="e0")
    await bench.folded()
    file = bench.home.spaces / "alice" / "log" / "words.jsonl"
    file.write_bytes(file.read_bytes() + b"edited by hand\n")
    worker = bench.worker()
    async with running(worker):
        await say(bench.bus, "word", id="e1")
        await say(bench.bus, "word", id="b0", space="bob")
        await until(lambda: applied(bench.home, "bob") == 3)
        await until(lambda: worker.follower.errors)

    assert "no ledger line" in worker.follower.last_error
    assert file.read_bytes().endswith(b"edited by hand\n")
