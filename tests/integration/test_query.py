"""Reads through the whole thing: three answers, positions, deadlines, lost and damaged views, wrong requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lamina import ids, requests
from lamina.client import Memory, Where
from lamina.errors import Invalid, LaminaError, Timeout, Unavailable
from lamina.home import Home
from lamina.store.view import generation
from tests.support.toy import until, view_file
from tests.support.whole import daemon


@pytest.fixture
async def alice(home: Home) -> AsyncIterator[Memory]:
    async with daemon(home), Memory.open(space="alice", home=home.path, agent="ag", project="pr") as memory:
        yield memory


async def test_an_empty_space_has_nothing_and_says_so(home: Home, alice: Memory) -> None:
    hits = await alice.recall("anything")

    assert (hits.status, hits.items, hits.degraded, hits.as_of_seq) == ("none", (), (), 0)
    assert await alice.why("nothing") == ()
    await alice.settled(5)


async def test_what_was_just_said_is_found_with_its_position(alice: Memory) -> None:
    for n in range(20):
        accepted = await alice.turn("user", f"note number {n}", session="s", turn_id=f"t{n}")
        hits = await alice.recall(f"note number {n}", min_seq=accepted.seq, deadline_s=5)

        assert hits.status == "found"
        assert accepted.id in [item.id for item in hits.items]
        assert hits.as_of_seq >= (accepted.seq or 0)
        assert hits.degraded == ()


async def test_an_item_knows_its_source(alice: Memory) -> None:
    accepted = await alice.turn(
        "user", "the red bicycle", session="s", name="Ada", turn_id="D1:3", time="2026-01-02T03:04:05+09:00"
    )
    (item,) = (await alice.recall("bicycle", min_seq=accepted.seq)).items

    assert (item.layer, item.id, item.text, item.space, item.session) == (
        "l0",
        accepted.id,
        "the red bicycle",
        "alice",
        "s",
    )
    assert (item.role, item.name, item.sources, item.turn_ids) == ("user", "Ada", (accepted.id,), ("D1:3",))
    assert item.time == "2026-01-02T03:04:05.000000+09:00"
    assert sum(item.parts.values()) == pytest.approx(item.score)


async def test_filters_bound_what_is_found(alice: Memory) -> None:
    old = await alice.turn("user", "tea one", session="s1", time="2025-01-01T00:00:00Z")
    new = await alice.turn("user", "tea two", session="s2", time="2026-01-01T00:00:00Z")
    await alice.remember("tea three")
    await alice.settled(10)

    async def found(where: Where) -> set[str]:
        return {item.text for item in (await alice.recall("tea", where=where)).items}

    assert await found(Where()) == {"tea one", "tea two", "tea three"}
    assert await found(Where(sessions=("s1",))) == {"tea one"}
    assert await found(Where(types=("memory.stated",))) == {"tea three"}
    assert await found(Where(agents=("ag",), projects=("pr",), sessions=("s2",))) == {"tea two"}
    assert await found(Where(agents=("other",))) == set()
    assert await found(Where(until=datetime(2025, 6, 1, tzinfo=UTC))) == {"tea one"}
    assert await found(Where(since=datetime(2025, 6, 1, tzinfo=UTC), sessions=("s1", "s2"))) == {"tea two"}
    assert old.id != new.id


async def test_spaces_are_apart(home: Home, alice: Memory) -> None:
    await alice.turn("user", "a secret about marmalade", session="s")
    await alice.settled(10)
    for other in ("Alice", "alice ", "bob"):
        async with Memory.open(space=other, home=home.path) as memory:
            assert (await memory.recall("marmalade")).status == "none"


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        '"',
        '" OR 1',
        "NEAR(",
        "a*",
        "col:x",
        "-",
        "()",
        "AND",
        "\0",
        "\ud800",
        "🎉",
        "x" * 100_000,
        "한 국 어",
    ],
)
async def test_any_query_is_answered(alice: Memory, query: str) -> None:
    await alice.turn("user", "something", session="s")
    await alice.settled(10)

    assert (await alice.recall(query)).status in ("found", "none")


WRONG: list[dict[str, Any]] = [
    {"query": None},
    {"query": 5},
    {"limit": 0},
    {"limit": 10_000},
    {"limit": "x"},
    {"limit": None},
    {"budget_tokens": 0},
    {"budget_tokens": 1.5},
    {"min_seq": "1"},
    {"min_seq": 1.0},
    {"deadline_s": 0},
    {"deadline_s": -1.0},
    {"deadline_s": 1e9},
    {"deadline_s": float("nan")},
    {"deadline_s": "1"},
    {"deadline_s": None},
    {"layers": ["l9"]},
    {"layers": "l0"},
    {"layers": 5},
    {"layers": [0]},
    {"now": "yesterday"},
    {"session": "\ud800"},
    {"where": Where(sessions=("\ud800",))},
]


NAMED_OTHERWISE = {"now": "RFC 3339", "session": "cannot be sent", "where": "cannot be sent"}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: ",".join(f"{k}={str(v)[:20]!a}" for k, v in wrong.items()))
async def test_a_wrong_request_is_invalid(alice: Memory, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(Invalid, match=NAMED_OTHERWISE.get(name, name.removesuffix("s"))):
        await alice.recall(**{"query": "tea", **wrong})


async def test_a_wrong_argument_is_invalid_and_named(home: Home, alice: Memory) -> None:
    wrong: Any
    for wrong in ("8000", None, 8e3):
        with pytest.raises(Invalid, match="window_tokens"):
            await alice.context([{"role": "user", "content": "hi"}], session="s", window_tokens=wrong)
    for wrong in ("l0", 5, [None]):
        with pytest.raises(Invalid, match="layers"):
            await alice.settled(1, layers=wrong)
    for wrong in ("", None, 5):
        with pytest.raises(Invalid, match="id"):
            await alice.why(wrong)
    with pytest.raises(Invalid, match="url"):
        Memory.open(space="alice", home=home.path, url=5)  # type: ignore[arg-type]


async def test_an_empty_id_is_no_turn_without_one(alice: Memory) -> None:
    with pytest.raises(Invalid, match="needs an id"):
        await alice.ask("why", requests.Why(id=""), requests.Chain)
    own = await alice.turn("user", "with an id of its own", session="s", turn_id="t1")
    await alice.turn("user", "without one", session="s")
    await alice.settled(10)

    assert [link.id for link in await alice.why("t1")] == [own.id]
    with pytest.raises(Invalid, match="needs an id"):
        await alice.ask("why", requests.Why(id=""), requests.Chain)


async def test_to_wait_no_time_for_what_is_folded_succeeds(alice: Memory) -> None:
    await alice.turn("user", "hi", session="s")
    await alice.settled(10)

    await alice.settled(0)


async def test_a_view_not_looked_at_in_time_is_not_said_to_be_behind(alice: Memory) -> None:
    accepted = await alice.turn("user", "hello", session="s")
    await alice.settled(10)
    for deadline_s in (1e-9, 1e-6, 1e-4):
        hits = await alice.recall("hello", min_seq=accepted.seq, deadline_s=deadline_s)

        assert hits.status == "found" or hits.degraded
        assert [part.why for part in hits.degraded if "view is at" in part.why] == []


async def test_unknown_names_are_invalid(alice: Memory) -> None:
    with pytest.raises(Invalid, match="journal"):
        await alice.settled(1, layers=["jornal"])
    with pytest.raises(Invalid, match="knows no"):
        await alice.ask("divine", requests.Why(id="x"), requests.Chain)
    for payload in (b"", b"{", b'{"nothing":1}', b"\xff"):
        with pytest.raises(Invalid, match="not understood"):
            await alice._link.bus.request(ids.rpc_subject("alice", "recall"), payload, timeout_s=5)


async def test_a_subject_made_by_somebody_else_reaches_no_folder(home: Home, alice: Memory) -> None:
    payload = b'{"id":"x"}'
    for space in ("/etc", "Alice", "a/../b", "__"):
        with pytest.raises(LaminaError):
            await alice._link.bus.request(f"lamina.rpc.0.{space}.why", payload, timeout_s=5)
    assert home.space_names() in ([], ["alice"])


@pytest.mark.parametrize("damage", ["deleted", "garbage", "no views"])
async def test_a_lost_view_heals_while_recall_says_so(home: Home, alice: Memory, damage: str) -> None:
    accepted = await alice.turn("user", "the blue teapot", session="s")
    assert (await alice.recall("teapot", min_seq=accepted.seq)).status == "found"
    link = view_file(home, "alice", "journal")
    path, n = link.resolve(), generation(link)
    for extra in link.parent.glob(f"{path.name}-*"):
        extra.unlink()
    if damage == "garbage":
        path.write_bytes(b"garbage " * 4_000)
    elif damage == "deleted":
        path.unlink()
    else:
        for file in link.parent.iterdir():
            file.unlink()

    async def healed() -> bool:
        hits = await alice.recall("teapot", deadline_s=0.5)
        assert hits.status == "found" or hits.degraded, "never a plain none"
        return hits.status == "found"

    await until(healed)
    assert damage != "deleted" or generation(link) > n


async def test_settled_names_what_is_behind(alice: Memory) -> None:
    await alice.turn("user", "hi", session="s")
    await alice.settled(10)
    for wait in (-1.0, float("nan"), "x"):
        with pytest.raises(Invalid, match="timeout_s"):
            await alice.settled(wait)  # type: ignore[arg-type]
    request = requests.Settled(timeout_s=0.1, layers=("journal",), min_seq=1_000)
    with pytest.raises(Timeout, match=r"journal at \d of 1000"):
        await alice.ask("settled", request, requests.Position)


async def test_a_position_that_does_not_come_is_named_and_the_rest_answered(home: Home, alice: Memory) -> None:
    accepted = await alice.turn("user", "hello world", session="s")
    await alice.settled(10)
    hits = await alice.recall("hello", min_seq=(accepted.seq or 0) + 50, deadline_s=0.5)

    assert hits.status == "found"
    (part,) = hits.degraded
    assert re.fullmatch(r"min_seq 51 is beyond the log's end \d for this space", part.why)
    async with Memory.open(space="nobody", home=home.path) as nobody:
        empty = await nobody.recall("hello", min_seq=5)
    assert (empty.status, len(empty.degraded)) == ("none", 1)


async def test_without_a_daemon_recall_is_unavailable_and_reads_raise(home: Home) -> None:
    async with daemon(home):
        memory = await Memory.open(space="alice", home=home.path)
    try:
        hits = await memory.recall("x")
        assert hits.status == "unavailable"
        assert hits.degraded[0].remedy
        with pytest.raises(Unavailable):
            await memory.ask("why", requests.Why(id="x"), requests.Chain)
    finally:
        await memory.close()


async def test_many_ask_at_once(alice: Memory) -> None:
    await alice.turn("user", "one of many", session="s")
    await alice.settled(10)
    answers = await asyncio.gather(*(alice.recall("many", deadline_s=10) for _ in range(100)))

    assert {hits.status for hits in answers} == {"found"}


async def test_pages_of_what_was_said(alice: Memory) -> None:
    for n in range(5):
        await alice.turn("user", f"turn {n}", session="s" if n % 2 else "t")
    await alice.end_session("s")
    await alice.settled(10)

    page = await alice.ask("turns", requests.Turns(limit=2, after=1), requests.TurnPage)
    newest = await alice.ask("turns", requests.Turns(limit=2, newest=True), requests.TurnPage)
    one = await alice.ask("turns", requests.Turns(session="s"), requests.TurnPage)
    sessions = await alice.ask("sessions", requests.Sessions(), requests.SessionPage)
    known = await alice.ask("known", requests.Known(ids=(page.turns[0].id, "no")), requests.KnownIds)

    assert ([turn.text for turn in page.turns], page.more) == (["turn 1", "turn 2"], True)
    assert [turn.text for turn in newest.turns] == ["turn 3", "turn 4"]
    assert [turn.text for turn in one.turns] == ["turn 1", "turn 3"]
    assert {(info.session, info.turns, info.ended) for info in sessions.sessions} == {("s", 2, True), ("t", 3, False)}
    assert known.ids == {page.turns[0].id: (page.turns[0].seq, known.ids[page.turns[0].id][1])}
