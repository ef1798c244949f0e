"""Seats and heartbeats: who is taken to be alive, and which lanes are left to whom."""

from __future__ import annotations

import pytest

from lamina.errors import Conflict
from lamina.home import Home
from lamina.ids import LANES
from lamina.runtime.lanes import SEATS
from lamina.runtime.membership import LEASE_S, Heartbeat, Membership, beats_of, heartbeats, seat_file

ALL = frozenset(range(LANES))


class Hand:
    """A clock in seconds that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def beat(*, standby: bool = False) -> Heartbeat:
    return Heartbeat(service="toy", pid=1, at_us=0, lanes=0, standby=standby)


async def member(home: Home, clock: Hand, *, standby: bool = False) -> Membership:
    one = Membership(home, "toy", clock_s=clock)
    await one.join(last=standby)
    one.tell(beat(standby=standby))
    return one


async def test_one_alone_has_all_lanes(home: Home) -> None:
    one = await member(home, Hand())

    assert one.lanes(standby=False) == ALL
    assert one.lanes(standby=True) == ALL


async def test_a_newcomer_takes_its_share_and_gives_it_back_when_it_leaves(home: Home) -> None:
    clock = Hand()
    one = await member(home, clock)
    other = await member(home, clock)

    assert (one.seat, other.seat) == (0, 1)
    assert one.lanes(standby=False) | other.lanes(standby=False) == ALL
    assert len(one.lanes(standby=False)) == len(other.lanes(standby=False)) == LANES // 2
    other.leave()
    assert one.lanes(standby=False) == ALL
    assert other.lanes(standby=False) == frozenset()


async def test_a_seat_that_was_left_is_taken_again_with_its_lanes(home: Home) -> None:
    clock = Hand()
    first, second = await member(home, clock), await member(home, clock)
    before = first.lanes(standby=False)
    first.leave()
    again = await member(home, clock)

    assert again.seat == 0
    assert again.lanes(standby=False) == before
    assert second.lanes(standby=False) == ALL - before


async def test_one_whose_beat_stands_still_for_the_lease_is_frozen_until_it_beats_again(home: Home) -> None:
    clock = Hand()
    one, other = await member(home, clock), await member(home, clock)
    both = one.lanes(standby=False)
    for _ in range(2):
        clock.now_s += LEASE_S / 2 - 0.1
        assert one.lanes(standby=False) == both
    clock.now_s += LEASE_S / 2
    assert one.lanes(standby=False) == ALL
    other.tell(beat())
    assert one.lanes(standby=False) == both


async def test_one_that_slept_itself_does_not_take_the_others_for_frozen(home: Home) -> None:
    clock = Hand()
    one, other = await member(home, clock), await member(home, clock)
    both = one.lanes(standby=False)
    assert both | other.lanes(standby=False) == ALL
    clock.now_s += 1_000

    assert one.lanes(standby=False) == both


async def test_who_stands_by_follows_lanes_while_nobody_else_does(home: Home) -> None:
    clock = Hand()
    own = await member(home, clock, standby=True)
    assert own.seat == SEATS - 1
    assert own.lanes(standby=True) == ALL
    other = await member(home, clock)
    assert own.lanes(standby=True) == frozenset()
    assert other.lanes(standby=False) == ALL
    clock.now_s += LEASE_S - 1
    assert own.lanes(standby=True) == frozenset()
    clock.now_s += LEASE_S - 1
    assert own.lanes(standby=True) == ALL


async def test_there_are_so_many_seats_and_no_more(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.runtime.membership.RETRY_S", 0)
    members = [await member(home, Hand()) for _ in range(SEATS)]
    with pytest.raises(Conflict, match="no room"):
        await member(home, Hand())
    for one in members:
        one.leave()


async def test_a_service_that_must_not_be_doubled_says_why(home: Home) -> None:
    one = Membership(home, "toy")
    await one.join(single="it counts in its head")
    with pytest.raises(Conflict, match="must not be doubled: it counts in its head"):
        await Membership(home, "toy").join(single="it counts in its head")


async def test_files_that_nobody_holds_or_that_hold_nothing_count_for_nothing(home: Home) -> None:
    one = await member(home, Hand())
    seat_file(home, "toy", 5).write_bytes(b'{"service":"toy","pid":1,"at_us":0,"lanes":256}')
    seat_file(home, "toy-two", 0).write_bytes(b"torn")
    (home.run / "workers" / "toy-x.json").write_bytes(b"{}")

    assert list(beats_of(home, "toy")) == [0]
    assert [found.seat for found in heartbeats(home)] == [0]
    assert one.lanes(standby=False) == ALL
