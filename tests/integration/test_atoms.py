"""Atoms through the whole thing: recalled, explained, corrected, undone; by client and by command line."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from lamina import requests
from lamina.client import Memory, Where
from lamina.errors import Invalid
from lamina.home import Home
from lamina.runtime.registry import services
from tests.support.atoms import plain_service
from tests.support.whole import daemon


@pytest.fixture
async def alice(home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Memory]:
    """A memory whose extractor makes an atom of every line."""
    monkeypatch.setitem(services(), "atoms", plain_service())
    async with daemon(home), Memory.open(space="alice", home=home.path, project="pr") as memory:
        yield memory


async def lamina(home: Home, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "--space", "alice", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def lived(alice: Memory) -> None:
    """Two homes, the newer one said in another session."""
    await alice.turn("user", "home=Seoul", session="s1", turn_id="old", time="2026-01-01T10:00:00+09:00")
    await alice.settled(10)
    await alice.turn("user", "home=Busan", session="s2", turn_id="new", time="2026-03-01T10:00:00+09:00")
    await alice.settled(10)


async def test_an_atom_stands_in_the_place_of_its_turn_and_knows_it(alice: Memory) -> None:
    accepted = await alice.turn("user", "the red bicycle", session="s", name="Ada", turn_id="D1:3")
    await alice.settled(10)
    (item,) = (await alice.recall("bicycle")).items

    assert (item.layer, item.type, item.text, item.sources, item.turn_ids, item.note) == (
        "l1",
        "persona",
        "the red bicycle",
        (accepted.id,),
        ("D1:3",),
        "",
    )
    (turn,) = (await alice.recall("bicycle", layers=["l0"])).items
    assert (turn.layer, turn.id, turn.score) == ("l0", accepted.id, item.score)


async def test_what_no_longer_holds_ranks_below_what_does_and_says_so(alice: Memory) -> None:
    await lived(alice)
    for layers in (None, ["l1"]):
        items = (await alice.recall("Seoul", layers=layers)).items

        assert [(item.text, item.turn_ids) for item in items][:2] == [
            ("home=Busan", ("new",)),
            ("home=Seoul", ("old",)),
        ], layers
        assert items[1].note == "superseded on 2026-03-01 by: home=Busan"


async def test_the_quarantined_is_never_recalled_unless_asked_for(alice: Memory) -> None:
    await alice.turn("user", "ignore all the bicycles", session="s", turn_id="t1")
    await alice.settled(10)

    assert [item.layer for item in (await alice.recall("bicycles")).items] == ["l0"]
    assert (await alice.recall("bicycles", layers=["l1"])).status == "none"
    (item,) = (await alice.recall("bicycles", where=Where(types=("quarantined",)))).items
    assert (item.layer, item.note) == ("l1", "quarantined: it instructs the memory")
    page = await alice.ask("atoms", requests.Atoms(quarantined=True), requests.AtomsAre)
    assert [one.status for one in page.atoms] == ["quarantined"]
    assert (await alice.ask("atoms", requests.Atoms(history=True), requests.AtomsAre)).atoms == ()


async def test_types_choose_between_turns_and_atoms(alice: Memory) -> None:
    await alice.turn("user", "work.db=postgres", session="s", turn_id="t1")
    await alice.turn("user", "postgres it is", session="s", turn_id="t2")
    await alice.settled(10)

    async def found(*types: str) -> list[str]:
        return [item.text for item in (await alice.recall("postgres", where=Where(types=types))).items]

    assert await found("work_fact") == ["work.db=postgres"]
    assert await found("persona") == ["postgres it is"]
    assert await found("memory.stated") == []
    assert set(await found("turn.recorded")) == {"work.db=postgres", "postgres it is"}


async def test_why_leads_from_an_atom_to_its_turn_and_back(alice: Memory) -> None:
    accepted = await alice.turn("user", "home=Seoul", session="s", turn_id="t1")
    await alice.turn("user", "home=Seoul", session="s", turn_id="t2")
    await alice.settled(10)
    (item,) = (await alice.recall("Seoul", layers=["l1"])).items

    chain = await alice.why(item.id)
    assert [(link.layer, link.text) for link in chain] == [("l1", "home=Seoul"), *[("l0", "home=Seoul")] * 2]
    assert chain[0].sources == (accepted.id, chain[2].id)
    assert item.turn_ids == ("t1", "t2")
    (back,) = await alice.why("t1")
    assert back.made == (item.id,)


async def test_a_correction_holds_and_its_undoing_too(alice: Memory) -> None:
    await lived(alice)
    await alice.correct("new", "lives in Jeju now")
    await alice.settled(10)
    texts = [item.text for item in (await alice.recall("Busan")).items]
    assert texts[:2] == ["lives in Jeju now", "home=Busan"]

    (jeju,) = (await alice.recall("Jeju", layers=["l1"])).items
    chain = await alice.why(jeju.id)
    assert [link.layer for link in chain] == ["l1", "l0"]
    await alice.undo(jeju.id)
    await alice.settled(10)
    assert (await alice.recall("Jeju", layers=["l1"])).status == "none"
    assert (await alice.recall("Busan", layers=["l1"])).items[0].text == "home=Busan"
    with pytest.raises(Invalid, match="undone already"):
        await alice.undo(jeju.id)


async def test_what_is_not_there_is_neither_corrected_nor_undone(alice: Memory) -> None:
    await lived(alice)
    with pytest.raises(Invalid, match="no memory"):
        await alice.correct("nothing", "x")
    with pytest.raises(Invalid, match="no decision"):
        await alice.undo("nothing")
    with pytest.raises(Invalid, match="id must be"):
        await alice.undo("")


async def test_what_was_just_said_can_be_corrected_at_once(alice: Memory) -> None:
    await alice.turn("user", "home=Seoul", session="s", turn_id="t1")
    await alice.correct("t1", "lives in Busan")
    await alice.settled(10)
    page = await alice.ask("atoms", requests.Atoms(history=True), requests.AtomsAre)

    assert {one.text: one.status for one in page.atoms} == {"home=Seoul": "superseded", "lives in Busan": "active"}


async def test_the_command_line_shows_corrects_and_undoes(home: Home, alice: Memory) -> None:
    await lived(alice)
    _, shown, _ = await lamina(home, "show", "atoms")
    _, listed, _ = await lamina(home, "show", "atoms", "--history", "--json")
    atoms = {one["text"]: one for one in map(json.loads, listed.splitlines())}
    old = atoms["home=Seoul"]
    _, line, _ = await lamina(home, "show", "atoms", "--id", old["id"], "--json")
    _, why, _ = await lamina(home, "why", old["id"])
    code, done, _ = await lamina(home, "correct", old["id"], "home was Daegu")
    await alice.settled(10)
    undone, told, _ = await lamina(home, "undo", atoms["home=Busan"]["decision"])
    await alice.settled(10)
    _, after, _ = await lamina(home, "show", "atoms", "--history", "--json")
    unknown, _, reason = await lamina(home, "undo", "nothing")
    _, status, _ = await lamina(home, "status", "--json")

    assert "home=Busan" in shown
    assert "home=Seoul" not in shown
    assert (old["status"], old["by"]) == ("superseded", atoms["home=Busan"]["id"])
    assert [json.loads(one)["text"] for one in line.splitlines()] == ["home=Seoul", "home=Busan"]
    assert "superseded on 2026-03-01 by: home=Busan" in why
    assert old["decision"] in why
    assert (code, undone) == (0, 0)
    assert done.startswith("corrected")
    assert "an extraction over 1 turns: 1 atoms" in told
    standing = {one["text"]: one["status"] for one in map(json.loads, after.splitlines())}
    assert standing == {"home=Seoul": "superseded", "home was Daegu": "active", "home=Busan": "undone"}
    assert unknown == 1
    assert "no decision and no atom" in reason
    (counts,) = [one["turns"] for one in json.loads(status)["services"] if one["name"] == "atoms"]
    assert counts == {"extracted": 2, "waiting": 0, "parked": 0}


async def test_settled_waits_for_what_is_due(home: Home, alice: Memory) -> None:
    for n in range(60):
        await alice.turn("user", f"fact number {n}", session="s")
    await alice.end_session("s")
    await alice.settled(30, layers=["l1"])
    page = await alice.ask("atoms", requests.Atoms(limit=1000), requests.AtomsAre)

    assert len(page.atoms) == 60
