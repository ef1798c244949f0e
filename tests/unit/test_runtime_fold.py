"""The fold loop against a log in memory: poison, stalls, rebuilds, lost and damaged files, many spaces."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lamina import events, ids, times
from lamina.bus import blobs
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Invalid
from lamina.events import MemoryStated, TurnRecorded
from lamina.home import Home
from lamina.runtime import Add, Change, Recorded, Rows
from lamina.runtime.views import Views
from lamina.runtime.worker import Worker, touch_subject
from lamina.store.driver import connect
from lamina.store.view import generation
from tests.support.toy import (
    POISON,
    State,
    applied,
    dump,
    fold,
    ledger,
    memory,
    rows,
    running,
    say,
    toy,
    turn,
    until,
    view_file,
)


@dataclass
class Bench:
    home: Home
    log: MemoryLog
    bus: MemoryBus

    def worker(self, **more: Any) -> Worker[State]:
        return Worker(toy(**more), MemoryBus(self.log), self.home)

    async def folded(self, space: str = "alice", **more: Any) -> Worker[State]:
        """Run a worker up to the end of the log for `space`, and stop it."""
        worker = self.worker(**more)
        last = await self.bus.last(f"lamina.ev.*.{ids.token(space)}.>")
        assert last is not None
        async with running(worker):
            await until(lambda: applied(self.home, space) >= last.seq)
        return worker


@pytest.fixture
def bench(home: Home) -> Bench:
    log, bus = memory()
    return Bench(home, log, bus)


async def test_folds_rows_state_and_files(bench: Bench) -> None:
    for n, text in enumerate(["tea and tea", "forget tea"]):
        await say(bench.bus, text, id=f"e{n}")
    await bench.folded()

    path = view_file(bench.home)
    assert rows(path, "SELECT word, count FROM words ORDER BY word") == [("and", 1), ("tea", 3)]
    assert rows(path, "SELECT seq, text FROM said") == [(1, "tea and tea"), (2, "forget tea")]
    assert ledger(bench.home).count(b"\n") == 2
    assert (bench.home.spaces / "alice" / "last.txt").read_text() == "forget tea"


async def test_poison_is_parked_and_the_rest_flows(bench: Bench) -> None:
    subject, raw = turn("wrong sum", id="e2")
    for text in ("one", POISON, "two"):
        await say(bench.bus, text, id=text)
    await bench.bus.publish(subject, b"no event")
    await bench.bus.publish(subject, raw.replace(b"wrong", b"right"))
    await bench.bus.publish(subject, raw.replace(b'{"id"', b'\n{"id"'))
    await say(bench.bus, "three", id="three")
    await bench.folded()

    path = view_file(bench.home)
    assert [row[0] for row in rows(path, "SELECT text FROM said")] == ["one", "two", "three"]
    dead = rows(path, "SELECT seq, error, raw FROM dead ORDER BY seq")
    assert [(seq, error.split(":")[0]) for seq, error, _ in dead] == [
        (2, "Invalid"),
        (4, "not an event"),
        (5, "event e2"),
        (6, "the event is not on one line; it was not written by a Lamina client"),
    ]
    assert dead[1][2] == b"no event"


@pytest.mark.parametrize("batch", [1, 500])
async def test_rows_that_do_not_fit_their_table_are_parked_alone(
    bench: Bench, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.runtime.follower.BATCH", batch)
    for n in range(1, 16):
        await say(bench.bus, "unfit" if n == 13 else f"word{n}", id=f"e{n}")
    await bench.folded()

    path = view_file(bench.home)
    assert [row[0] for row in rows(path, "SELECT seq FROM said")] == [*range(1, 13), 14, 15]
    assert [row[0] for row in rows(path, "SELECT seq FROM dead")] == [13]
    assert ledger(bench.home).count(b"\n") == 15


async def test_what_only_sqlite_cannot_hold_is_parked(bench: Bench) -> None:
    def huge(state: State, recorded: Recorded, rows_: Rows) -> tuple[State, Sequence[Change]]:
        folded, changes = fold(state, recorded, rows_)
        return folded, [*changes, Add("said", (2**70, "x"))] if recorded.seq == 2 else changes

    for n in range(3):
        await say(bench.bus, f"word{n}", id=f"e{n}")
    await bench.folded(fold=huge)

    assert [row[0] for row in rows(view_file(bench.home), "SELECT seq FROM dead")] == [2]


async def test_events_of_a_later_version_pass_and_unknown_types_advance(bench: Bench) -> None:
    when = times.from_micros(0)
    later = events.encode(events.make(MemoryStated(text="x"), id="v9", space="alice", time=when))
    await bench.bus.publish(
        "lamina.ev.185.alice.memory-stated".replace("185", str(ids.lane("alice"))), later.replace(b'"v":1', b'"v":9')
    )
    unknown = events.encode(events.make_raw("moon.rose", b"{}", id="m", space="alice", time=when))
    await bench.bus.publish(ids.event_subject("alice", "moon.rose"), unknown)
    await bench.folded()

    assert applied(bench.home) == 2
    assert rows(view_file(bench.home), "SELECT id FROM dead") == [("v9",)]


async def test_a_space_is_entered_through_its_own_subject_alone(bench: Bench, tmp_path: Any) -> None:
    _, raw = turn("evil", id="evil", space="bob")
    await bench.bus.publish(ids.event_subject("alice", "turn.recorded"), raw)
    own = turn("evil", id="evil", space="alice")[1]
    for subject in (
        f"lamina.ev.{ids.lane('alice') ^ 1}.alice.turn-recorded",
        f"lamina.ev.{ids.lane('alice')}.alice.turn-recorded.more",
        f"lamina.ev.{ids.lane('alice')}.Alice.turn-recorded",
        "lamina.ev.alice",
        f"lamina.ev.0.{tmp_path}/outside.turn-recorded".replace("_", "-"),
        "lamina.ev.0./etc.turn-recorded",
    ):
        await bench.bus.publish(subject, own)
    await say(bench.bus, "good", id="good")
    worker = await bench.folded()

    assert [row[0] for row in rows(view_file(bench.home), "SELECT text FROM said")] == ["good"]
    assert rows(view_file(bench.home), "SELECT seq FROM dead") == [(1,)]
    assert worker.follower.errors == 6
    assert bench.home.space_names() == ["alice"]
    assert worker.follower.position == 8


async def test_blobs_are_kept_before_the_line_and_damaged_ones_fetched_again(bench: Bench) -> None:
    blob = await blobs.put(bench.bus, "alice", b"x" * 300_000)
    event = events.make(TurnRecorded(role="user", text=blob), id="b1", space="alice", time=times.from_micros(0))
    subject = ids.event_subject("alice", "turn.recorded")
    await bench.bus.publish(subject, events.encode(event))
    await bench.folded()
    kept = bench.home.spaces / "alice" / "blobs" / blob.sha256
    assert kept.read_bytes() == b"x" * 300_000
    kept.write_bytes(b"y")
    again = events.make(TurnRecorded(role="user", text=blob), id="b2", space="alice", time=times.from_micros(0))
    await bench.bus.publish(subject, events.encode(again))
    await bench.folded()

    assert kept.read_bytes() == b"x" * 300_000
    assert rows(view_file(bench.home), "SELECT * FROM dead") == []


@pytest.mark.parametrize("sha256", ["../../../etc/passwd", "a" * 64, "A" * 64, ""])
async def test_a_blob_that_is_not_there_is_said(bench: Bench, sha256: str) -> None:
    data = TurnRecorded(role="user", text=events.Blob(sha256, 5))
    event = events.make(data, id="b1", space="alice", time=times.from_micros(0))
    await bench.bus.publish(ids.event_subject("alice", "turn.recorded"), events.encode(event))
    await bench.folded()

    assert rows(view_file(bench.home), "SELECT id FROM dead") == [("b1",)]


async def test_two_workers_of_one_view_leave_what_one_leaves(bench: Bench, tmp_path: Any) -> None:
    for n in range(200):
        await say(bench.bus, f"word{n % 7} common", id=f"e{n}")
    workers = [bench.worker() for _ in range(3)]
    async with running(*workers):
        for n in range(200, 300):
            await say(bench.bus, f"word{n % 7} common", id=f"e{n}")
        await until(lambda: applied(bench.home) == 300)
    alone = Home(tmp_path / "alone")
    alone.prepare()
    async with running(Worker(toy(), MemoryBus(bench.log), alone)):
        await until(lambda: applied(alone) == 300)

    assert dump(bench.home) == dump(alone)
    assert ledger(bench.home) == ledger(alone)


async def test_a_locked_view_holds_no_other_space_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.store.driver.BUSY_TIMEOUT_MS", 20)
    monkeypatch.setattr("lamina.runtime.follower.RETRY_S", 0.01)
    await say(bench.bus, "first", id="a0")
    await bench.folded()
    frozen = connect(view_file(bench.home).resolve(), readonly=False)
    frozen.execute("BEGIN IMMEDIATE")
    worker = bench.worker()
    async with running(worker):
        for n in range(5):
            await say(bench.bus, f"text {n}", id=f"a{n + 1}")
            await say(bench.bus, f"text {n}", id=f"b{n}", space="bob")
            await until(lambda: applied(bench.home, "bob") == bench.log.last_seq)
        assert applied(bench.home) == 1
        assert worker.follower.position == 1
        frozen.execute("ROLLBACK")
        await until(lambda: applied(bench.home) == 10)
        await until(lambda: worker.follower.position == 11)
    frozen.close()

    assert [row[0] for row in rows(view_file(bench.home), "SELECT seq FROM said")] == [1, 2, 4, 6, 8, 10]
    assert worker.follower.errors > 0


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
    monkeypatch.setattr("lamina.runtime.worker.most_open_views", lambda: 4)
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

    monkeypatch.setattr("lamina.runtime.worker.most_open_views", lambda: 8)
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


async def test_goes_on_after_the_bus_was_away(bench: Bench) -> None:
    worker = bench.worker()
    async with running(worker):
        await say(bench.bus, "one", id="e0")
        await until(lambda: applied(bench.home) == 1)
        bench.log.down = True
        await asyncio.sleep(0)
        bench.log.down = False
        await say(bench.bus, "two", id="e1")
        await until(lambda: applied(bench.home) == 2)


async def test_a_new_epoch_rebuilds_the_views(bench: Bench) -> None:
    worker = bench.worker()
    async with running(worker):
        for n in range(3):
            await say(bench.bus, "old", id=f"e{n}")
        await until(lambda: applied(bench.home) == 3)
        log_folder = bench.home.spaces / "alice" / "log"
        bench.log.refill()
        for file in log_folder.iterdir():  # what the daemon does when it finds a new epoch
            file.unlink()
        await say(bench.bus, "new", id="n0")
        await until(lambda: rows(view_file(bench.home), "SELECT text FROM said") == [("new",)])

    assert ledger(bench.home).count(b"\n") == 1


async def test_a_clean_stop_writes_positions_and_leaves_nothing_open(bench: Bench) -> None:
    fds = open_files()
    for n in range(20):
        await say(bench.bus, "x", id=f"e{n}", space=f"s{n}")
    worker = bench.worker()
    async with running(worker):
        await until(lambda: worker.follower.position == 20)
    again = bench.worker()
    read: list[int] = []
    async with running(again):
        await until(lambda: again.follower.caught_up.is_set())
        read.append(again.follower.applied)

    assert read == [0]
    assert open_files() == fds
    assert [path for path in bench.home.run.rglob("*") if path.name.startswith("toy-")] == []


def open_files() -> int:
    """How many files this process has open, where the system tells."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


async def test_a_touch_of_what_is_no_space_makes_none(bench: Bench) -> None:
    worker = bench.worker()
    async with running(worker):
        await until(lambda: worker.follower.caught_up.is_set())
        for space in ("nobody", "Alice", "_"):
            await bench.bus.notify(touch_subject("toy", space), b"")
        with pytest.raises(Invalid):
            await worker.follower.touch("../../etc")
        await worker.follower.touch("nobody")

    assert bench.home.space_names() == []
