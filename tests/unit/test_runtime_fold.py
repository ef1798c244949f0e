"""The fold loop against a log in memory: poison, stalls, rebuilds, lost and damaged files, many spaces."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lamina import events, ids, times
from lamina.bus import blobs
from lamina.bus.memory import MemoryBus
from lamina.errors import Invalid
from lamina.events import MemoryStated, TurnRecorded
from lamina.home import Home
from lamina.runtime import Add, Change, Recorded, Rows
from lamina.runtime.membership import heartbeats
from lamina.runtime.worker import Worker, touch_subject
from lamina.store.driver import connect
from tests.support.bench import Bench
from tests.support.toy import (
    POISON,
    State,
    applied,
    dump,
    fold,
    ledger,
    rows,
    running,
    say,
    toy,
    turn,
    until,
    view_file,
)


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
    assert heartbeats(bench.home) == []


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
