"""What is older than the policy keeps it is forgotten, and never nearly all of a space."""

from __future__ import annotations

import pytest

from lamina.bus.memory import MemoryLog
from lamina.config import RetentionConfig
from lamina.errors import Conflict
from lamina.events import TurnRecorded
from lamina.forget.run import expire, unfinished
from lamina.home import Home
from lamina.verify.run import verify
from tests.support.atoms import START_US, AtomsBench
from tests.support.mixed import folded

DAY_US = 86_400 * 1_000_000


class Days:
    """Arrival times a day apart."""

    def __init__(self) -> None:
        self.now_us = START_US

    def __call__(self) -> int:
        self.now_us += DAY_US
        return self.now_us


@pytest.fixture
async def ten_days(home: Home) -> AtomsBench:
    """Ten turns, a day apart: the first is of a pinned session, the second a tool result, the third a statement."""
    made = AtomsBench(home, MemoryLog(now_us=Days()))
    await made.say("a word of the pinned session", id="e0", session="pinned")
    await made.tool("a result of long ago", id="e1")
    await made.state("I was stated", id="e2")
    for n in range(3, 10):
        await made.publish(TurnRecorded(role="user", text=f"turn of day {n}"), id=f"e{n}")
    await folded(home, made.log)
    return made


def ids(bench: AtomsBench) -> set[str]:
    return {event.id for event in bench._logged() if event.type != "memory.forgotten"}


POLICY = RetentionConfig(turns_days=5, pinned_sessions=("pinned",))
NOW_US = START_US + 11 * DAY_US


async def test_what_is_older_goes_but_what_is_pinned_stays(home: Home, ten_days: AtomsBench) -> None:
    dry = await expire(home, ten_days.bus, "alice", POLICY, now_us=NOW_US, dry_run=True)
    assert ids(ten_days) == {f"e{n}" for n in range(10)}

    done = await expire(home, ten_days.bus, "alice", POLICY, now_us=NOW_US)

    assert (dry.said, done.said, done.found) == ({"turn.recorded": 2}, {"turn.recorded": 2}, ())
    assert ids(ten_days) == {f"e{n}" for n in range(10)} - {"e3", "e4"}
    assert (await verify(home, ten_days.bus, ["alice"])).findings == ()
    again = await expire(home, ten_days.bus, "alice", POLICY, now_us=NOW_US)
    assert (again.ids, unfinished(home)) == ((), [])


async def test_layers_are_kept_for_different_times(home: Home, ten_days: AtomsBench) -> None:
    policy = RetentionConfig(results_days=5)

    done = await expire(home, ten_days.bus, "alice", policy, now_us=NOW_US)

    assert done.said == {"tool.returned": 1}
    assert ids(ten_days) == {f"e{n}" for n in range(10)} - {"e1"}


async def test_no_policy_empties_a_space(home: Home, ten_days: AtomsBench) -> None:
    policy = RetentionConfig(turns_days=1, results_days=1)
    later = NOW_US + 30 * DAY_US
    with pytest.raises(Conflict, match="9 of 10"):
        await expire(home, ten_days.bus, "alice", policy, now_us=later)
    assert (ids(ten_days), unfinished(home)) == ({f"e{n}" for n in range(10)}, [])

    await expire(home, ten_days.bus, "alice", policy, now_us=later, force=True)

    assert ids(ten_days) == {"e2"}
