"""A decision that looks at another service's view waits for it a little, and is put off where it does not come."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.bus.memory import MemoryBus
from lamina.home import Home
from lamina.runtime import Wanted
from lamina.runtime.sibling import sibling
from lamina.runtime.spec import Made, NotYet
from lamina.runtime.worker import Worker
from lamina.store import View
from lamina.store.view import generation
from tests.support.bench import Bench
from tests.support.toy import State, applied, digest, running, toy, until, view_file


def words(db: sqlite3.Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT word FROM words ORDER BY word")]


def other(bench: Bench, home: Home | None = None) -> Worker[State]:
    """A second service over the same log."""
    service = replace(toy(), name="other")
    return Worker(service, MemoryBus(bench.log), home or bench.home, clock_us=bench.clock)


async def opened(bench: Bench) -> View:
    """The view of the toy service, as its decider has it."""
    link = view_file(bench.home)
    view = View(link, toy().tables, n=generation(link))
    await view.open()
    return view


async def follow(bench: Bench, worker: Worker[Any], service: str) -> None:
    async with running(worker):
        await until(lambda: applied(bench.home, service=service) == bench.log.last_seq)


async def test_reads_what_the_other_has_folded(bench: Bench) -> None:
    await bench.turns("a", "b")
    await follow(bench, bench.worker(), "toy")
    await follow(bench, other(bench), "other")
    view = await opened(bench)

    assert await sibling(view, "other", words, at_least=bench.log.last_seq, wait_s=0) == ["a", "b"]
    assert await sibling(view, "other", lambda db: db.execute("SELECT NULL").fetchone()[0], at_least=1) is None

    await view.close()


async def test_waits_for_one_that_is_behind(bench: Bench) -> None:
    await bench.turns("a")
    await follow(bench, bench.worker(), "toy")
    await follow(bench, other(bench), "other")
    view = await opened(bench)

    waiting = asyncio.create_task(sibling(view, "other", words, at_least=2, wait_s=10))
    await bench.turns("b")
    await follow(bench, other(bench), "other")

    assert await waiting == ["a", "b"]
    await view.close()


@pytest.mark.parametrize("lacks", ["view", "events", "epoch"])
async def test_says_that_it_is_not_there_yet(bench: Bench, lacks: str) -> None:
    await bench.turns("a")
    await follow(bench, bench.worker(), "toy")
    if lacks != "view":
        await follow(bench, other(bench), "other")
    view = await opened(bench)
    if lacks == "epoch":
        await view.transaction(lambda db: db.execute("UPDATE meta SET value = 'other' WHERE key = 'epoch'"))

    with pytest.raises(NotYet, match=r"^other: "):
        await sibling(view, "other", words, at_least=2 if lacks == "events" else 1, wait_s=0)

    await view.close()


async def test_raises_what_the_work_raises_and_writes_nothing(bench: Bench) -> None:
    await bench.turns("a")
    await follow(bench, bench.worker(), "toy")
    await follow(bench, other(bench), "other")
    view = await opened(bench)

    with pytest.raises(ZeroDivisionError):
        await sibling(view, "other", lambda _: 1 // 0, at_least=1)
    with pytest.raises(Exception, match="readonly"):
        await sibling(view, "other", lambda db: db.execute("DELETE FROM words"), at_least=1)

    await view.close()


async def test_a_decision_is_put_off_without_an_event_and_made_when_the_time_has_come(bench: Bench) -> None:
    seen: list[list[str]] = []

    async def looking(wanted: Wanted, view: View) -> Made:
        seen.append([])
        seen[-1] = await sibling(view, "other", words, at_least=2, wait_s=0)
        return await digest(wanted, view)

    worker = bench.decider(looking)
    async with running(worker):
        await bench.turns("a", "b")
        await until(lambda: seen and not worker.decider._busy)
        assert bench.failures() == [], "nothing failed"
        assert min(worker.decider.due.values()) > bench.clock.now_us, "due a little later"
        assert bench.digests() == []

        await follow(bench, other(bench), "other")
        bench.clock.pass_s(1)
        worker.decider.stop_waiting()
        await until(lambda: bench.digests() == ["a,b"])

    assert seen == [[], ["a", "b"]]
    assert bench.failures() == []


async def test_what_never_comes_is_asked_for_again_and_never_parked(bench: Bench) -> None:
    asked: list[int] = []

    async def looking(wanted: Wanted, view: View) -> Made:
        asked.append(bench.clock.now_us)
        raise NotYet("other: it is not there")

    worker = bench.decider(looking, max_attempts=3)
    async with running(worker):
        await bench.turns("a", "b")

        async def often() -> bool:
            bench.clock.pass_s(1)
            worker.decider.stop_waiting()
            return len(asked) > 5

        await until(often)

    assert bench.failures() == []
    assert bench.log.last_seq == 2
