"""Workers that share lanes: nothing is lost or done twice when lanes change hands."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from lamina.bus.memory import MemoryBus
from lamina.home import Home
from lamina.ids import LANES, lane, token
from lamina.runtime.index import Index
from lamina.runtime.worker import Worker
from tests.support.bench import Bench
from tests.support.toy import State, applied, digest, dump, running, say, toy, until

SPACES = [f"space{n}" for n in range(12)]
ALL = frozenset(range(LANES))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.runtime.worker.HEARTBEAT_S", 0.02)
    monkeypatch.setattr("lamina.runtime.membership.LEASE_S", 5.0)


def sharer(bench: Bench, *, decides: bool = False) -> Worker[State]:
    service = toy(act=digest) if decides else toy()
    return Worker(service, MemoryBus(bench.log), bench.home, lanes=None, clock_us=bench.clock)


async def write(bench: Bench, first: int, last: int) -> None:
    for n in range(first, last):
        for space in SPACES:
            await say(bench.bus, f"word{n % 5} {space}", id=f"{space}-{n}", space=space)


async def folded(bench: Bench) -> None:
    for space in SPACES:
        last = await bench.bus.last(f"lamina.ev.*.{token(space)}.>")
        assert last is not None
        await until(partial(at_least, bench.home, space, last.seq))


def at_least(home: Home, space: str, seq: int) -> bool:
    return applied(home, space) >= seq


def digested(bench: Bench, space: str, count: int) -> bool:
    return len(bench.digests(space=space)) == count


async def alone(bench: Bench, folder: Home) -> None:
    """Another home that one worker brings to the end of the log."""
    folder.prepare()
    one = Worker(toy(), MemoryBus(bench.log), folder)
    async with running(one):
        await until(lambda: all(applied(folder, space) == applied(bench.home, space) for space in SPACES))


async def test_a_join_and_a_leave_lose_nothing(bench: Bench) -> None:
    one, other = sharer(bench), sharer(bench)
    async with running(one):
        await write(bench, 0, 5)
        await folded(bench)
        async with running(other):
            await until(lambda: len(one.follower.lanes) == len(other.follower.lanes) == LANES // 2)
            assert one.follower.lanes | other.follower.lanes == ALL
            before = one.follower.applied, other.follower.applied
            await write(bench, 5, 10)
            await folded(bench)
            assert one.follower.applied + other.follower.applied - sum(before) >= 5 * len(SPACES)
            theirs = [space for space in SPACES if lane(token(space)) in other.follower.lanes]
            assert 0 < len(theirs) < len(SPACES)
            assert other.follower.applied - before[1] >= 5 * len(theirs)  # what is read again counts again
        await write(bench, 10, 15)
        await folded(bench)
        await until(lambda: one.follower.lanes == ALL)

    clean = Home(bench.home.path / "alone")
    await alone(bench, clean)
    assert [dump(bench.home, space) for space in SPACES] == [dump(clean, space) for space in SPACES]


async def test_a_lane_is_taken_from_where_it_was_left(bench: Bench) -> None:
    one = sharer(bench)
    async with running(one):
        await write(bench, 0, 20)
        await folded(bench)
    again = sharer(bench)
    async with running(again):
        await until(lambda: again.follower.caught_up.is_set())
        await write(bench, 20, 21)
        await folded(bench)

    assert again.follower.applied == len(SPACES)


async def test_who_takes_a_lane_folds_what_a_dead_one_left(bench: Bench) -> None:
    one, dead = sharer(bench), sharer(bench)
    async with running(one):
        task = asyncio.create_task(dead.run())
        await until(lambda: len(one.follower.lanes) == len(dead.follower.lanes) == LANES // 2)
        task.cancel()  # it writes no positions any more
        await asyncio.gather(task, return_exceptions=True)
        await write(bench, 0, 5)
        await folded(bench)
        assert one.follower.lanes == ALL


async def test_what_is_due_goes_with_its_lane(bench: Bench) -> None:
    one, other = sharer(bench, decides=True), sharer(bench, decides=True)
    async with running(one), running(other):
        await until(lambda: len(one.follower.lanes) == len(other.follower.lanes) == LANES // 2)
        await write(bench, 0, 4)
        for space in SPACES:
            await until(partial(digested, bench, space, 2))
        await until(lambda: not one.decider.due and not other.decider.due)

    assert not any(bench.refused())
    assert one.decider.made + other.decider.made == 2 * len(SPACES)
    assert min(one.decider.made, other.decider.made) > 0


async def test_a_worker_without_lanes_folds_nothing_and_stops(bench: Bench) -> None:
    own = Worker(toy(), MemoryBus(bench.log), bench.home, lanes=None, standby=lambda: True)
    other = sharer(bench)
    async with running(other), running(own):
        await until(lambda: other.follower.lanes == ALL and not own.follower.lanes)
        await write(bench, 0, 2)
        await folded(bench)
        assert own.follower.applied == 0
        assert own.heartbeat().state == "standby"
    last = Worker(toy(), MemoryBus(bench.log), bench.home, lanes=None, standby=lambda: True)
    async with running(last):
        await until(lambda: last.follower.lanes == ALL)


async def test_what_a_former_owner_writes_of_a_lane_is_dropped(home: Home) -> None:
    former, owner = Index(home.run / "toy.db"), Index(home.run / "toy.db")
    await former.open()
    await owner.open()
    n = lane("alice")
    await former.own(ALL)
    await former.advance("e", {n: 5, (n + 1) % LANES: 5})
    await former.set_due({"alice": 7})
    await owner.own([n])
    await owner.advance("e", {n: 9})

    assert await former.advance("e", {n: 6, (n + 1) % LANES: 6}) == {n}
    assert await former.set_due({"alice": None}) == {"alice"}
    assert await owner.positions("e", [n, (n + 1) % LANES]) == {n: 9, (n + 1) % LANES: 6}
    assert await owner.due() == {"alice": 7}
    await former.close()
    await owner.close()


async def test_a_quiet_lane_is_not_read_from_long_ago(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.runtime.follower.STALE_EVENTS", 3)
    quiet, busy = "alice", "bob"
    await say(bench.bus, "one", id="q", space=quiet)
    for n in range(10):
        await say(bench.bus, f"text {n}", id=f"b{n}", space=busy)
    index = Index(bench.home.run / "toy.db")
    await index.open()
    await index.advance(bench.bus.epoch, {**dict.fromkeys(range(LANES), 11), lane(quiet): 1, 7: 1})
    await index.close()
    one = sharer(bench)
    async with running(one):
        await until(lambda: one.follower.caught_up.is_set())
        assert one.follower.position == 11
        assert one.follower.applied == 0
