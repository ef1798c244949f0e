"""Decisions that are of no use: unfit data, impossible numbers, other services' failures, broken code."""

from __future__ import annotations

import asyncio

import pytest

from lamina import events, ids, times
from lamina.errors import Closed, LaminaError
from lamina.events import StepFailed
from lamina.runtime import Due, Wanted
from lamina.runtime.spec import Made
from lamina.store import View
from tests.support.bench import Bench
from tests.support.toy import (
    STEP,
    State,
    applied,
    rows,
    running,
    until,
    view_file,
)


async def test_a_decision_that_its_fold_cannot_take_ends_as_dead(bench: Bench) -> None:
    async def malformed(wanted: Wanted, view: View) -> Made:
        return Made("toy.digested", {"nothing": "of use"}, tokens=1)

    worker = bench.decider(malformed, max_attempts=3)
    async with running(worker):
        await bench.turns("a", "b")

        async def given_up() -> bool:
            bench.clock.pass_s(1_000_000)
            worker.decider.stop_waiting()
            await asyncio.sleep(0.005)
            return [failure.dead for failure in bench.failures()] == [True]

        bench.log.now_us = bench.clock
        await until(given_up)
        await until(lambda: not worker.decider.due)

    assert len(bench.logged("toy.digested")) == 3
    assert bench.digests() == []


@pytest.mark.parametrize("n", [0, -1, 2**53, 2**63, 10**30])
async def test_a_number_that_cannot_be_one_is_parked_and_stops_nothing(bench: Bench, n: int) -> None:
    data = b'{"step":"%s","n":%d,"inputs":[],"text":"x"}' % (STEP.encode(), n)
    event = events.make_raw("toy.digested", data, id="evil", space="alice", time=times.from_micros(0))
    await bench.bus.publish(ids.event_subject("alice", "toy.digested"), events.encode(event))
    async with running(bench.decider()):
        await bench.turns("a", "b")
        await until(lambda: bench.digests() == ["a,b"])

    assert rows(view_file(bench.home), "SELECT id FROM dead") == [("evil",)]


async def test_failures_of_other_services_take_no_number(bench: Bench) -> None:
    failure = StepFailed(step="other.step", n=1, inputs=(), attempt=1, error="x", dead=True)
    event = events.make(failure, id="f", space="alice", time=times.from_micros(0))
    await bench.bus.publish(ids.event_subject("alice", "step.failed"), events.encode(event))
    async with running(bench.decider()):
        await until(lambda: applied(bench.home) == 1)

    assert rows(view_file(bench.home), "SELECT * FROM decided") == []


async def test_a_view_closed_under_a_decision_is_no_failed_attempt(bench: Bench) -> None:
    async def closed(wanted: Wanted, view: View) -> Made:
        raise Closed("toy.db is closed")

    worker = bench.decider(closed)
    async with running(worker):
        await bench.turns("a", "b")
        await until(lambda: min(worker.decider.due.values(), default=0) > bench.clock.now_us)

    assert bench.failures() == []


@pytest.mark.parametrize("error", [ValueError, LaminaError])
async def test_a_decide_function_that_raises_stops_its_space_alone(bench: Bench, error: type[Exception]) -> None:
    def picky(state: State, now_us: int) -> Wanted | Due | None:
        if "bad" in state.open:
            raise error("cannot decide")
        return Wanted(STEP, state.open[:2]) if len(state.open) >= 2 else None

    worker = bench.decider(decide=picky)
    async with running(worker):
        await bench.turns("bad", space="bob")
        await bench.turns("a", "b")
        await until(lambda: bench.digests() == ["a,b"])
