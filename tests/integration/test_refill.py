"""The log loses its store: the ledgers publish it again, also interrupted, also damaged."""

from __future__ import annotations

import shutil

import pytest

from lamina.client import Memory
from lamina.home import Home
from tests.support.whole import daemon, sources, texts


async def said(home: Home, space: str, *said: str) -> None:
    async with daemon(home), Memory.open(space=space, home=home.path) as memory:
        for text in said:
            await memory.turn("user", text, session="s1")
        await memory.settled()


async def at_rest(home: Home, space: str) -> None:
    """A start and an end of the daemon, with the old ledger gone in between."""
    async with daemon(home), Memory.open(space=space, home=home.path) as memory:
        await memory.settled()


async def test_a_lost_store_is_refilled_with_its_arrival_times_and_goes_on(home: Home) -> None:
    await said(home, "alice", "one", "two")
    before = sources(home, "alice")
    shutil.rmtree(home.bus)
    await said(home, "alice", "three")
    after = sources(home, "alice")

    assert texts(home, "alice") == ["one", "two", "three"]
    assert [line["event"] for line in after[:2]] == [line["event"] for line in before]
    assert [line["at"] for line in after[:2]] == [line["at"] for line in before]


async def test_new_events_after_an_unfinished_refill_are_no_second_history(home: Home) -> None:
    await said(home, "alice", "one")
    shutil.rmtree(home.bus)
    old = home.space("alice") / "log.old"
    shutil.copytree(home.space("alice") / "log", home.path / "copy")
    await said(home, "alice", "two")
    if not old.exists():  # as if the daemon had died before it let the old ledger go
        shutil.copytree(home.path / "copy", old)
    await said(home, "alice", "three")

    assert texts(home, "alice") == ["one", "two", "three"]


async def test_one_damaged_line_costs_that_line_and_is_kept_for_repair(home: Home) -> None:
    await said(home, "alice", "one", "two", "three")
    await said(home, "bob", "hello")
    ledger = next((home.space("alice") / "log").glob("*.jsonl"))
    whole = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(b"\xff garbage\n" if b'"text":"two"' in line else line for line in whole))
    shutil.rmtree(home.bus)
    await said(home, "alice", "four")
    await at_rest(home, "bob")

    assert texts(home, "alice") == ["one", "three", "four"]
    assert texts(home, "bob") == ["hello"]
    kept = [path for path in home.space("alice").iterdir() if path.name.startswith(("log.damaged", "log.old"))]
    assert b"garbage" in next(kept[0].glob("*.jsonl")).read_bytes()


@pytest.mark.parametrize("session", [None, 5])
async def test_a_session_that_is_no_text_is_refused_before_anything_is_accepted(home: Home, session: object) -> None:
    from lamina.errors import Invalid

    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        with pytest.raises(Invalid, match="session"):
            await memory.remember("x", session=session)  # type: ignore[arg-type]
        await memory.turn("user", "fine", session="s1")
        await memory.settled()

    assert texts(home, "alice") == ["fine"]


async def test_a_page_of_long_turns_ends_before_the_bus_does(home: Home) -> None:
    from lamina.requests import TurnPage, Turns

    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        for n in range(14):
            await memory.turn("user", f"{n} word " + "x" * 90_000, session="s1")
        await memory.settled()
        page: TurnPage = await memory.ask("turns", Turns(limit=50, newest=True), TurnPage)
        hits = await memory.recall("word", limit=200, budget_tokens=10**9, deadline_s=20)

    assert page.more
    assert page.turns[-1].text.startswith("13 ")
    assert hits.status == "found"
    assert len(hits.items) < 14
