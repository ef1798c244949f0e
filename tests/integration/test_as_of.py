"""Questions to the memory of a moment, through the daemon: by position, by time, of logs with times of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.client import Memory
from lamina.errors import Conflict, Invalid, Unavailable
from lamina.home import Home
from lamina.records import AsOf, Hits
from lamina.requests import Atoms, AtomsAre, Canvases, CanvasesAre, SessionPage, Sessions, TurnPage, Turns
from lamina.runtime.pasts import discard_pasts
from tests.support.whole import daemon


@pytest.fixture
async def alice(home: Home) -> AsyncIterator[Memory]:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        yield memory


async def told(memory: Memory, query: str, as_of: Any, **more: Any) -> set[str]:
    hits = await memory.recall(query, as_of=as_of, deadline_s=30, **more)
    assert hits.status != "unavailable", hits.degraded
    return {item.text for item in hits.items}


async def test_a_position_gives_what_was_known_after_that_event(alice: Memory) -> None:
    seqs = [
        (await alice.turn("user", f"the database is {name}", session="s")).seq
        for name in ("Oracle", "MySQL", "Neo4j")
    ]
    await alice.settled(20)
    now = await alice.recall("database")

    assert await told(alice, "database", seqs[0]) == {"the database is Oracle"}
    assert await told(alice, "database", f"{now.epoch}:{seqs[1]}") == {
        "the database is Oracle",
        "the database is MySQL",
    }
    assert await told(alice, "database", 0) == set()
    hits = await alice.recall("database", as_of=seqs[1], deadline_s=30)
    assert (hits.as_of_seq, hits.lag, hits.epoch) == (seqs[1], {"journal": 0}, now.epoch)


async def test_atoms_stand_as_they_stood(alice: Memory) -> None:
    """What was superseded since holds in the memory of then, and `why` knows nothing of later events."""
    first = await alice.remember("I live in Lisbon")
    await alice.settled(20)
    (old,) = await atoms(alice, None)
    later = await alice.correct(old.id, "I live in Porto")
    await alice.settled(20)
    head = (await alice.recall("live")).as_of_seq

    assert {one.text: one.status for one in await atoms(alice, AsOf(seq=head))} == {
        "I live in Porto": "active",
        "I live in Lisbon": "superseded",
    }
    before = AsOf(seq=(later.seq or 0) - 1)
    assert [(one.text, one.status) for one in await atoms(alice, before)] == [("I live in Lisbon", "active")]
    assert [link.id for link in await alice.why(old.id, as_of=before)] == [old.id, first.id]
    assert await alice.why(later.id, as_of=before) == ()
    assert await told(alice, "where do I live", before, layers=["l1"]) == {"I live in Lisbon"}


async def test_a_time_is_that_of_the_events_where_a_log_was_imported(alice: Memory) -> None:
    """Said in an order that is not that of the log: the newest came first."""
    for year, city in ((2024, "Rome"), (2020, "Oslo"), (2022, "Cairo")):
        time = f"{year}-05-01T10:00:00+02:00"
        await alice.turn("user", f"My home is in {city}", session=f"s{year}", time=time)
    await alice.settled(20)

    assert await told(alice, "home", "2021-01-01T00:00:00Z", layers=["l0"]) == {"My home is in Oslo"}
    assert await told(alice, "home", datetime(2023, 1, 1, tzinfo=UTC), layers=["l0"]) == {
        "My home is in Oslo",
        "My home is in Cairo",
    }
    assert await told(alice, "home", "2019-01-01T00:00:00Z") == set()
    assert len(await told(alice, "home", datetime.now(UTC), layers=["l0"])) == 3


async def test_what_came_in_since_of_before_then_is_known_then(alice: Memory) -> None:
    await alice.turn("user", "tea in the morning", session="s", time="2020-01-01T00:00:00Z")
    await alice.settled(20)
    then = "2021-01-01T00:00:00Z"
    assert await told(alice, "tea", then) == {"tea in the morning"}

    await alice.turn("user", "tea at noon", session="t", time="2020-06-01T00:00:00Z")
    await alice.settled(20)

    assert await told(alice, "tea", then, layers=["l0"]) == {"tea in the morning", "tea at noon"}


async def test_an_atom_is_known_with_the_latest_of_its_sources(alice: Memory) -> None:
    """One extraction over turns of many years: each atom is known from its own turn on."""
    for year in (2020, 2021, 2022):
        await alice.turn("user", f"I bought a bicycle in {year}.", session="s", time=f"{year}-05-01T10:00:00Z")
    await alice.end_session("s")
    await alice.settled(20)
    assert len(await atoms(alice, None)) == 3

    then = await atoms(alice, AsOf(time=datetime(2021, 7, 1, tzinfo=UTC)))

    assert sorted(one.time[:4] for one in then) == ["2020", "2021"]


async def test_other_reads_are_as_they_were(alice: Memory) -> None:
    first = await alice.tool_result("read_file", {"path": "a"}, "x\n" * 400, session="s")
    await alice.turn("user", "later", session="t")
    await alice.settled(20)
    then = AsOf(seq=first.seq)

    page = await alice.ask("turns", Turns(as_of=then), TurnPage)
    assert [one.session for one in page.turns] == ["s"]
    assert [one.session for one in (await alice.ask("sessions", Sessions(as_of=then), SessionPage)).sessions] == ["s"]
    drawn = await alice.ask("canvases", Canvases(as_of=then), CanvasesAre)
    assert [one.session for one in drawn.canvases] == ["s"]


async def test_the_prompt_is_as_it_was(alice: Memory) -> None:
    first = await alice.turn("user", "I want to plan a trip to Busan", session="s")
    await alice.turn("assistant", "Where do you want to stay?", session="s")
    await alice.turn("user", "Near the beach of Haeundae", session="s")
    await alice.settled(20)

    async with asyncio.timeout(20):
        while True:
            try:
                then = await alice.prompt("s", as_of=first.seq)
            except Unavailable:
                continue
            break

    assert "Busan" in then.dynamic
    assert "Haeundae" not in then.dynamic
    assert "Haeundae" in (await alice.prompt("s")).dynamic


async def test_what_held_at_a_time_is_another_question_than_what_was_known(alice: Memory) -> None:
    await alice.remember("I live in Lisbon", time="2022-03-01T12:00:00Z")
    await alice.settled(20)
    (old,) = await atoms(alice, None)
    await alice.correct(old.id, "I live in Porto", time="2024-03-01T12:00:00Z")
    await alice.settled(20)

    async def held(year: int) -> list[str]:
        at = datetime(year, 1, 1, tzinfo=UTC)
        return [one.text for one in (await alice.ask("atoms", Atoms(true_at=at), AtomsAre)).atoms]

    assert await held(2021) == []
    assert await held(2023) == ["I live in Lisbon"]
    assert await held(2025) == ["I live in Porto"]


async def test_a_moment_that_is_none_is_refused(alice: Memory) -> None:
    await alice.turn("user", "something", session="s")
    for position in (10**6, "another:1"):
        with pytest.raises(Conflict):
            await alice.recall("x", as_of=position, deadline_s=10)
    for wrong in (-1, "soon", 1.5, True, "2026-01-01T00:00:00", ":1:", datetime(2026, 1, 1)):  # noqa: DTZ001
        with pytest.raises(Invalid):
            await alice.recall("x", as_of=wrong, deadline_s=10)  # type: ignore[arg-type]


async def test_what_cannot_be_made_in_time_is_said_and_made_on(alice: Memory) -> None:
    for n in range(120):
        await alice.turn("user", f"note {n}", session=f"s{n % 7}")
    await alice.settled(30)

    first = await alice.recall("note", as_of=100, deadline_s=0.001)
    assert first.status == "unavailable"
    assert [part.part for part in first.degraded] == ["as_of"]

    async def found() -> Hits:
        while (hits := await alice.recall("note", as_of=100, deadline_s=1)).status == "unavailable":
            pass
        return hits

    async with asyncio.timeout(30):
        assert (await found()).status == "found"


async def test_views_of_the_past_that_were_discarded_are_made_anew(home: Home, alice: Memory) -> None:
    seq = (await alice.turn("user", "a kept word", session="s")).seq
    await alice.settled(20)
    assert await told(alice, "kept", seq) == {"a kept word"}
    assert list((home.run / "past").glob("*/alice/*/journal.db"))

    discard_pasts(home, "alice")

    assert not list((home.run / "past").glob("*/alice"))
    assert await told(alice, "kept", seq) == {"a kept word"}


async def test_what_is_forgotten_is_in_no_past(home: Home, alice: Memory) -> None:
    """Not in views that were made before, and not in the answer: the receipt would name the file."""
    secret = await alice.turn("user", "the heirloom is under the floorboards", session="s", turn_id="t")
    await alice.turn("user", "the heirloom is old", session="s")
    await alice.settled(20)
    end = (await alice.recall("heirloom")).as_of_seq
    for then in (secret.seq, end, datetime.now(UTC)):
        assert "the heirloom is under the floorboards" in await told(alice, "heirloom", then)

    receipt = await alice.forget(turn="t")

    assert receipt.found == ()
    await alice.settled(20)
    for then in (secret.seq, end, datetime.now(UTC)):
        assert "the heirloom is under the floorboards" not in await told(alice, "heirloom", then)


async def atoms(memory: Memory, as_of: AsOf | None) -> list[Any]:
    while True:
        try:
            page = await memory.ask("atoms", Atoms(as_of=as_of, history=True), AtomsAre)
        except Unavailable:
            continue
        return list(page.atoms)
