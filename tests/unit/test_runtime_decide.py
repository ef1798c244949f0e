"""The decide loop with a toy decider: nothing is decided twice, the first in the log wins, failures survive."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lamina import ids
from lamina.bus import Ack
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Busy, Conflict, Invalid, Unavailable
from lamina.home import Home
from lamina.runtime import Change, Due, Recorded, Rows, Wanted
from lamina.runtime.spec import Act, Made, Unmade
from lamina.runtime.worker import Worker
from lamina.store import View
from tests.support.bench import Bench
from tests.support.toy import (
    STEP,
    Clock,
    State,
    applied,
    digest,
    fold,
    rows,
    running,
    toy,
    until,
    view_file,
)


def other_home(bench: Bench) -> Home:
    made = Home(bench.home.path.with_name("other"))
    made.prepare()
    return made


async def test_decides_each_input_once_with_cause_and_number(bench: Bench) -> None:
    async with running(bench.decider()):
        await bench.turns(*"abcde")
        await until(lambda: bench.digests() == ["a,b", "c,d"])

    made = [msgspec.json.decode(event.data) for event in bench.logged("toy.digested")]
    assert [(one["step"], one["n"], one["tokens"]) for one in made] == [(STEP, 1, 7), (STEP, 2, 7)]
    assert [event.cause for event in bench.logged("toy.digested")] == [("a", "b"), ("c", "d")]
    assert [event.id for event in bench.logged("toy.digested")] == [
        ids.decision_id("alice", STEP, 1, ["a", "b"]),
        ids.decision_id("alice", STEP, 2, ["c", "d"]),
    ]


async def test_a_replay_asks_nobody(bench: Bench) -> None:
    async with running(bench.decider()):
        await bench.turns(*"abcd")
        await until(lambda: len(bench.digests()) == 2)

    async def never(wanted: Wanted, view: View) -> Made:
        raise AssertionError("asked again")

    other = other_home(bench)
    replayed = bench.decider(never, home=other)
    async with running(replayed):
        await until(lambda: applied(other) == bench.log.last_seq)
        await until(lambda: not replayed.decider.due)

    assert bench.digests(other) == bench.digests()
    assert bench.failures() == []


@pytest.mark.parametrize("error", [Unavailable, Busy, Conflict, ValueError, KeyError, OSError, ZeroDivisionError])
async def test_a_failed_attempt_is_an_event_and_is_tried_again_after_its_time(
    bench: Bench, error: type[Exception]
) -> None:
    tries: list[int] = []

    async def flaky(wanted: Wanted, view: View) -> Made:
        tries.append(bench.clock.now_us)
        if len(tries) <= 2:
            raise error("try again")
        return await digest(wanted, view)

    worker = bench.decider(flaky)
    async with running(worker):
        await bench.turns("a", "b")
        for attempt in (1, 2):
            await until(lambda: len(bench.failures()) == len(tries) == attempt)  # noqa: B023 - awaited here
            await until(lambda: min(worker.decider.due.values(), default=0) > bench.clock.now_us)
            bench.clock.pass_s(0.7)
            worker.decider.stop_waiting()
            await asyncio.sleep(0.02)
            assert len(tries) == attempt, "not before its time"
            bench.clock.pass_s(6.0)
            worker.decider.stop_waiting()
        await until(lambda: bench.digests() == ["a,b"])

    assert [failure.attempt for failure in bench.failures()] == [1, 2]
    assert all(failure.error.startswith(error.__name__) for failure in bench.failures())
    assert rows(view_file(bench.home), "SELECT * FROM failed") == []


@pytest.mark.parametrize("permanent", [True, False])
async def test_dead_after_the_last_attempt_and_the_rest_goes_on(bench: Bench, permanent: bool) -> None:
    async def hopeless(wanted: Wanted, view: View) -> Made:
        if "a" in wanted.inputs:
            raise Invalid("never") if permanent else Unavailable("not now")
        return await digest(wanted, view)

    worker = bench.decider(hopeless, max_attempts=3)
    async with running(worker):
        await bench.turns(*"abcd")

        async def digested() -> bool:
            bench.clock.pass_s(1_000)
            worker.decider.stop_waiting()
            await asyncio.sleep(0.005)
            return bench.digests() == ["c,d"]

        await until(digested)

    assert [failure.attempt for failure in bench.failures()] == ([1] if permanent else [1, 2, 3])
    assert [failure.dead for failure in bench.failures()] == ([True] if permanent else [False, False, True])
    assert rows(view_file(bench.home), "SELECT type FROM dead") == [("step.failed",)]


async def test_retries_and_their_waiting_survive_a_restart(bench: Bench) -> None:
    tries = 0

    async def down(wanted: Wanted, view: View) -> Made:
        nonlocal tries
        tries += 1
        raise Unavailable("the model is down")

    first = bench.decider(down)
    async with running(first):
        await bench.turns("a", "b")
        await until(lambda: rows(view_file(bench.home), "SELECT 1 FROM failed"))
        await until(lambda: min(first.decider.due.values(), default=0) > bench.clock.now_us)
        await until(lambda: first.follower.position == bench.log.last_seq)
    second = bench.decider(down)
    async with running(second):
        await until(lambda: second.follower.caught_up.is_set())
        await until(lambda: second.decider.due.get("alice", 0) > bench.clock.now_us)
        assert tries == 1
        bench.clock.pass_s(10)
        second.decider.stop_waiting()
        await until(lambda: len(bench.failures()) == 2)

    assert [failure.attempt for failure in bench.failures()] == [1, 2]


async def test_what_is_due_is_known_after_a_restart_without_a_new_event(bench: Bench) -> None:
    never = asyncio.Event()

    async def slow(wanted: Wanted, view: View) -> Made:
        await never.wait()
        raise AssertionError

    stopped = bench.decider(slow)
    async with running(stopped):
        await bench.turns("a", "b")
        await until(lambda: stopped.follower.position == 2)
        await until(lambda: stopped.decider._busy)
    async with running(bench.decider()):
        await until(lambda: bench.digests() == ["a,b"])


async def test_a_slow_decision_stops_nobody_and_ends_with_its_worker(bench: Bench) -> None:
    async def slow(wanted: Wanted, view: View) -> Made:
        if "slow1" in wanted.inputs:
            await asyncio.Event().wait()
        return await digest(wanted, view)

    worker = bench.decider(slow)
    async with running(worker):
        await bench.turns("slow1", "slow2")
        for n in range(4):
            await bench.turns(f"{n}x", f"{n}y", space=f"space-{n}")
        await until(lambda: all(bench.digests(space=f"space-{n}") for n in range(4)))
        await bench.turns("more1", "more2")
        await until(
            lambda: (
                applied(bench.home) == bench.log.last_seq
                or len(rows(view_file(bench.home), "SELECT 1 FROM said")) == 4
            )
        )
        assert bench.digests() == []
    async with running(bench.decider()):
        await until(lambda: bench.digests() == ["slow1,slow2", "more1,more2"])


async def test_the_first_of_two_rivals_wins_and_the_others_tokens_are_counted(bench: Bench) -> None:
    """One worker looks, is stopped while it decides (for longer than any window), and comes back late."""
    looked, woken = asyncio.Event(), asyncio.Event()

    async def stopped(wanted: Wanted, view: View) -> Made:
        if not looked.is_set():
            looked.set()
            await woken.wait()
        return Made("toy.digested", {"text": "late"}, tokens=11)

    other = other_home(bench)
    late_clock = Clock()
    late = bench.decider(stopped, clock=late_clock)
    prompt = bench.decider(home=other)
    bench.log.now_us = bench.clock
    async with running(late):
        await bench.turns("a", "b")
        await looked.wait()
        async with running(prompt):
            await until(lambda: bench.digests(other) == ["a,b"])
        bench.clock.pass_s(10_000)  # beyond dedup window, leases and back-offs
        await bench.turns("c", "d")
        woken.set()
        await until(lambda: bench.refused() and bench.digests() == ["a,b", "c,d"])
        async with running(prompt_again := bench.decider(home=other)):
            await until(lambda: applied(other) == bench.log.last_seq and not prompt_again.decider.due)

    assert [tokens for _, tokens in bench.refused()] == [11]
    assert bench.refused(other) == bench.refused()
    assert bench.digests(other) == bench.digests()
    texts = rows(view_file(bench.home), "SELECT text FROM digests ORDER BY n")
    assert texts[0] == ("a+b",), "the late one changed nothing"


async def test_two_deciders_with_different_inputs_decide_nothing_twice(bench: Bench) -> None:
    """Each publishes its own first decision over other inputs before it has seen the rival's."""
    both = asyncio.Barrier(2)
    first_done: set[str] = set()

    def meeting(name: str) -> Act:
        async def act(wanted: Wanted, view: View) -> Made:
            if name not in first_done:
                first_done.add(name)
                await both.wait()
            return Made("toy.digested", {"text": f"{name}:{'+'.join(wanted.inputs)}"}, tokens=3)

        return act

    def wide(state: State, now_us: int) -> Wanted | Due | None:
        return Wanted(STEP, state.open[:3]) if len(state.open) >= 2 else None

    def decided(home: Home) -> list[str]:
        return [name for row in bench.digests(home) for name in row.split(",")]

    other = other_home(bench)
    await bench.turns("a", "b")
    one = bench.decider(meeting("one"))
    async with running(one):
        await until(lambda: "one" in first_done)
        await bench.turns("c")
        two = bench.decider(meeting("two"), home=other, decide=wide)
        async with running(two):
            await until(lambda: bench.digests() and bench.digests(other))
            await bench.turns("d", "e")
            # What is due is known a moment after a row is there, so rows tell the end: one turn at most is left.
            await until(lambda: all(len(decided(home)) >= 4 for home in (bench.home, other)) and bench.refused())

    assert bench.digests() == bench.digests(other)
    assert len(decided(bench.home)) == len(set(decided(bench.home)))
    assert len(bench.refused()) >= 1


@pytest.mark.parametrize("rivals", [2, 4])
async def test_many_workers_of_one_home_decide_nothing_twice(bench: Bench, rivals: int) -> None:
    async def eager(wanted: Wanted, view: View) -> Made:
        await asyncio.sleep(0)
        return await digest(wanted, view)

    workers = [bench.decider(eager) for _ in range(rivals)]
    async with running(*workers):
        for n in range(20):
            await bench.turns(f"t{n:02}")
        await until(lambda: len(bench.digests()) == 10)
        await until(lambda: not any(worker.decider.due for worker in workers))

    inputs = [name for row in bench.digests() for name in row.split(",")]
    assert inputs == [f"t{n:02}" for n in range(20)]


async def test_a_decision_whose_ack_was_lost_is_not_made_twice(bench: Bench) -> None:
    worker = bench.decider()
    async with running(worker):
        await bench.turns("a")
        bench.log.lose_acks = 0
        await until(lambda: applied(bench.home) == 1)
        subject_worker_loses = asyncio.get_running_loop().create_future()

        async def losing(wanted: Wanted, view: View) -> Made:
            bench.log.lose_acks = 1
            subject_worker_loses.set_result(None)
            return await digest(wanted, view)

        object.__setattr__(worker.decider, "_service", msgspec.structs.replace(worker.service, act=losing))
        await bench.turns("b")
        await subject_worker_loses
        await until(lambda: bench.digests() == ["a,b"])
        bench.clock.pass_s(5)
        worker.decider.stop_waiting()
        await until(lambda: not worker.decider.due)

    assert len(bench.logged("toy.digested")) == 1


async def test_not_before_its_time_and_then_at_once(bench: Bench) -> None:
    at = bench.clock.now_us + 3_600_000_000

    def later(state: State, now_us: int) -> Wanted | Due | None:
        if len(state.open) < 2:
            return None
        return Wanted(STEP, state.open[:2]) if now_us >= at else Due(at)

    first = bench.decider(decide=later)
    async with running(first):
        await bench.turns("a", "b")
        await until(lambda: first.decider.due == {"alice": at})
        await until(lambda: first.follower.position == 2)
    second = bench.decider(decide=later)
    async with running(second):
        await until(lambda: second.decider.due == {"alice": at})
        assert bench.digests() == []
        bench.clock.now_us = at
        second.decider.stop_waiting()
        await until(lambda: bench.digests() == ["a,b"])


async def test_a_fold_that_needs_rows_and_a_decision_meet_in_one_batch(bench: Bench) -> None:
    seen: list[int] = []

    def watching(state: State, recorded: Recorded, rows_: Rows) -> tuple[State, Sequence[Change]]:
        seen.append(recorded.seq)
        return fold(state, recorded, rows_)

    await bench.turns(*"abcd")
    async with running(bench.decider(fold=watching)):
        await until(lambda: len(bench.digests()) == 2)

    assert seen == sorted(seen)


async def test_what_the_state_cannot_hold_is_planned_from_the_rows(bench: Bench) -> None:
    attempts: list[int] = []

    def decide(state: State, now_us: int) -> Wanted | None:
        return Wanted(STEP, ()) if len(state.open) >= 2 else None

    def plan(db: sqlite3.Connection, wanted: Wanted, now_us: int, attempt: int) -> Wanted | Due | None:
        attempts.append(attempt)
        texts = [row[0] for row in db.execute("SELECT text FROM said ORDER BY seq")]
        if "go" not in texts:
            return Due(now_us + 60_000_000)
        done = {one for row in db.execute("SELECT inputs FROM digests") for one in row[0].split(",")}
        return replace(wanted, inputs=tuple(text for text in texts if text not in done))

    async def act(wanted: Wanted, view: View) -> Made:
        if len(attempts) == 2:
            raise Unmade(Unavailable("not now"), tokens=5, inputs=wanted.inputs[:1])
        return Made("toy.digested", {"text": "+"}, inputs=wanted.inputs[:2])

    worker = bench.decider(act, decide=decide, plan=plan)
    async with running(worker):
        await bench.turns("a", "b")
        await until(lambda: attempts == [0])
        await until(lambda: worker.decider.due.get("alice", 0) == bench.clock.now_us + 60_000_000)
        await bench.turns("go", "d")

        async def digested() -> bool:
            bench.clock.pass_s(5)
            worker.decider.stop_waiting()
            await asyncio.sleep(0.005)
            return bench.digests() == ["a,b", "go,d"]

        await until(digested)

    assert [(failure.inputs, failure.tokens) for failure in bench.failures()] == [(("a",), 5)]
    assert attempts == [0, 0, 1, 0]
    made = bench.logged("toy.digested")
    assert [event.cause for event in made] == [("a", "b"), ("go", "d")]
    assert [event.id for event in made] == [
        ids.decision_id("alice", STEP, 1, ["a", "b"]),
        ids.decision_id("alice", STEP, 2, ["go", "d"]),
    ]


class LateAck(MemoryBus):
    """Everybody hears of a decision before the one who published it."""

    def __init__(self, log: MemoryLog, home: Home) -> None:
        super().__init__(log)
        self._home = home

    async def publish(self, subject: str, data: bytes, **more: Any) -> Ack:
        ack = await super().publish(subject, data, **more)
        await until(lambda: applied(self._home) >= ack.seq)
        return ack


async def test_a_decision_that_comes_back_before_its_ack_is_not_waited_for(bench: Bench) -> None:
    await bench.turns("a", "b", "c", "d")
    worker = Worker(toy(act=digest), LateAck(bench.log, bench.home), bench.home, clock_us=bench.clock)

    async with running(worker):
        await until(lambda: bench.digests() == ["a,b", "c,d"])
