"""Parked events: seen with their reason, tried again in order, or let rest for good."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.dead.parked import chosen, dead
from lamina.dead.records import Dead
from lamina.dead.settle import drop, retry
from lamina.errors import Invalid, Permanent
from lamina.ids import event_subject
from lamina.rebuild.progress import Progress
from lamina.rebuild.view import rebuild_view
from lamina.runtime import registry
from lamina.runtime.spec import Service
from tests.support.bench import Bench
from tests.support.toy import State, applied, digest, fold, rows, running, say, toy, until, view_file


def nothing(_: Progress) -> None:
    """Nobody looks at the progress."""


def installed(monkeypatch: pytest.MonkeyPatch, service: Service[State]) -> None:
    """`service` is the one that there is."""
    for name in ("lamina.dead.parked", "lamina.dead.settle"):
        monkeypatch.setattr(f"{name}.fold_services", lambda: {service.name: service})
    assert registry.fold_services()


def parked(bench: Bench) -> list[Dead]:
    return list(dead(bench.home, ["alice"]))


async def poisoned(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, toy())
    await bench.bus.publish(event_subject("alice", "turn.recorded"), b"no event")
    await bench.turns("tea", "cake")
    await say(bench.bus, "poison", id="p1")
    await say(bench.bus, "poison", id="p2")
    await bench.folded()


async def test_what_is_parked_is_seen_with_its_reason(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await poisoned(bench, monkeypatch)

    found = parked(bench)

    assert [(one.kind, one.seq) for one in found] == [("malformed", 1), ("turn.recorded", 4), ("turn.recorded", 5)]
    assert [one.id for one in found[1:]] == ["p1", "p2"]
    assert "this turn is poison" in found[1].error
    assert [one.id for one in chosen(found, ids=["p2"], kind=None, every=False)] == ["p2"]
    assert len(chosen(found, ids=[], kind="turn.recorded", every=False)) == 2
    for ids, kind in (([], None), (["p3"], None), ([], "moon")):
        with pytest.raises(Invalid):
            chosen(found, ids=ids, kind=kind, every=False)


async def test_a_new_code_takes_what_is_retried_in_its_order(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await poisoned(bench, monkeypatch)
    before = parked(bench)

    def healed(state: State, recorded: Any, rows_: Any) -> Any:
        try:
            return fold(state, recorded, rows_)
        except Invalid:
            return state, ()

    service = toy(fold=healed)
    installed(monkeypatch, service)
    async with running(bench.worker(fold=healed)):
        settled = await retry(bench.home, bench.bus, before, nothing)

    assert [one.outcome for one in settled] == ["parked", "taken", "taken"]
    assert [one.kind for one in parked(bench)] == ["malformed"]
    assert rows(view_file(bench.home), "SELECT text FROM said") == [("tea",), ("cake",)]


async def test_a_retry_that_fails_again_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await poisoned(bench, monkeypatch)
    async with running(bench.worker()):
        settled = await retry(bench.home, bench.bus, parked(bench)[1:2], nothing)

    assert [(one.id, one.outcome) for one in settled] == [("p1", "parked")]
    assert "poison" in settled[0].error


async def test_what_is_dropped_stays_dropped_in_every_rebuild(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await poisoned(bench, monkeypatch)
    found = parked(bench)
    with pytest.raises(Invalid, match="reason"):
        await drop(bench.home, bench.bus, found, " ")
    async with running(bench.worker()):
        settled = await drop(bench.home, bench.bus, found[:2], "a test")
        assert {one.outcome for one in settled} == {"taken"}
        assert [one.id for one in parked(bench)] == ["p2"]
        await rebuild_view(toy(), bench.bus, bench.home, "alice", nothing)

    assert [one.id for one in parked(bench)] == ["p2"]


async def test_a_decision_that_was_given_up_is_made_when_it_is_retried(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = True

    async def act(wanted: Any, view: Any) -> Any:
        if broken:
            raise Permanent("the model does not like this")
        return await digest(wanted, view)

    installed(monkeypatch, toy(act=act))
    await bench.turns("tea", "cake")
    async with running(bench.decider(act)):
        await until(lambda: parked(bench))
        assert [one.kind for one in parked(bench)] == ["step.failed"]
        broken = False
        settled = await retry(bench.home, bench.bus, parked(bench), nothing)
        await until(lambda: bench.digests())

    assert [one.outcome for one in settled] == ["taken"]
    assert bench.digests() == ["tea,cake"]
    assert parked(bench) == []
    assert applied(bench.home) == bench.log.last_seq
