"""Scenarios over a real daemon: from what is said to a file, to `why` and back."""

from __future__ import annotations

import asyncio

import pytest

from lamina.client import Memory
from lamina.config import Config, DaemonConfig
from lamina.home import Home
from lamina.requests import Scenarios, ScenariosAre
from lamina.runtime.sealing import sealed
from lamina.skills import Skills, SkillsAre
from tests.support.whole import daemon

STORY = {
    "monday": (
        "We are moving the orders database to PostgreSQL 16.",
        "I run the orders migration with pg_dump.",
    ),
    "cats": ("My cat Momo only eats tuna.", "Momo sleeps on the red sofa."),
    "friday": (
        "I moved the orders database with pg_dump today.",
        "We decided to run the migration of the orders database on Sunday.",
    ),
}


async def told(memory: Memory) -> None:
    for session, turns in STORY.items():
        for text in turns:
            await memory.turn("user", text, session=session)
        await memory.end_session(session)
    await memory.settled(30, layers=["l2"])


async def test_from_turns_to_a_file_and_back(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await told(memory)
        page = await memory.ask("scenarios", Scenarios(), ScenariosAre)
        found = {one.title: one for one in page.scenarios}
        migration = next(one for title, one in found.items() if "orders" in title)
        whole = (await memory.ask("scenarios", Scenarios(name=migration.slug), ScenariosAre)).scenarios[0]
        chain = await memory.why(migration.slug)
        atom = await memory.why(whole.atoms[0])
        by_mark = await memory.why(whole.atoms[0][:8])

    assert len(page.scenarios) == 2
    assert migration.sessions == 2
    assert migration.status == "open"
    assert migration.heat > 0
    assert sealed(whole.text) == (home.spaces / "alice" / whole.path).read_bytes()
    assert chain[0].layer == "l2"
    assert {link.layer for link in chain} == {"l2", "l1", "l0"}
    assert set(chain[0].sources) == set(whole.atoms)
    assert {link.id for link in chain if link.layer == "l1"} == set(whole.atoms)
    assert atom[0].made == (migration.id,)
    assert by_mark == atom
    assert "Momo" not in " ".join(link.text for link in chain)


async def test_a_daemon_that_starts_again_has_the_same_files(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await told(memory)
    files = {path.name: path.read_bytes() for path in (home.spaces / "alice" / "scenarios").glob("*.md")}
    for path in [*(home.spaces / "alice" / "scenarios").glob("*"), *(home.spaces / "alice" / "views").glob("scen*")]:
        path.unlink()

    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.settled(30, layers=["l2"])

    assert {path.name: path.read_bytes() for path in (home.spaces / "alice" / "scenarios").glob("*.md")} == files


@pytest.mark.parametrize("name", ["nothing", "../alice", "a b", "%", "\x00"])
async def test_no_such_scenario(home: Home, name: str) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await told(memory)
        page = await memory.ask("scenarios", Scenarios(name=name), ScenariosAre)

    assert page.scenarios == ()


async def test_recall_gives_the_situation_where_it_is_asked_for(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await told(memory)
        await memory.turn("user", "The migration plan is on page nine.", session="x", turn_id="page")
        await memory.end_session("x")
        await memory.settled(30)
        alone = await memory.recall("orders database migration", layers=["l2"])
        every = await memory.recall("orders database migration", layers=["l0", "l1", "l2"], limit=3)
        plain = await memory.recall("orders database migration", layers=["l0", "l1"], limit=3)
        unasked = await memory.recall("orders database migration", limit=50)
        full = await memory.recall("orders database migration", limit=2)
        nothing = await memory.recall("zebra", layers=["l2"])

    assert {item.layer for item in alone.items} == {"l2"}
    assert "orders" in alone.items[0].text
    assert alone.items[0].score == alone.items[0].parts["share"]
    assert len(alone.items[0].sources) == 4
    assert [item.layer for item in every.items][-1] == "l2"
    assert [item.id for item in every.items][:2] == [item.id for item in plain.items][:2]
    assert [item.id for item in unasked.items if item.layer == "l2"] == [alone.items[0].id]
    assert unasked.items[-1].layer == "l2", "after everything else"
    assert "l2" not in {item.layer for item in full.items}, "no place is taken that was not asked for"
    assert nothing.status == "none"


async def test_recall_says_where_situations_cannot_be_read(home: Home) -> None:
    async with (
        daemon(home, Config(daemon=DaemonConfig(services=("journal", "atoms", "query")))),
        Memory.open(space="alice", home=home.path) as memory,
    ):
        await memory.turn("user", "The orders database moves.", session="x")
        await memory.settled(30, layers=["l1"])
        hits = await memory.recall("orders", layers=["l2"])
        both = await memory.recall("orders", layers=["l0", "l2"])

    assert hits.status == "none"
    assert both.status == "found"
    assert "scenarios" in [part.part for part in hits.degraded]
    assert "scenarios" in [part.part for part in both.degraded]


async def test_a_skill_is_listed_read_edited_and_forgotten_with_its_folder(home: Home) -> None:
    worked = (
        "Running `make export REGION=eu` worked: the orders go to the harbour bucket.",
        "`aws s3 ls s3://orders` works and shows the orders of the harbour bucket.",
    )
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        for n, text in enumerate(worked):
            await memory.turn("assistant", text, session="s", turn_id=f"t{n}")
        await memory.end_session("s")
        await memory.settled(30, layers=["l2"])
        (one,) = (await memory.ask("skills", Skills(), SkillsAre)).skills
        (whole,) = (await memory.ask("skills", Skills(name=one.name), SkillsAre)).skills
        file = home.spaces / "alice" / one.path
        assert sealed(whole.text) == file.read_bytes()
        assert (one.steps, one.text, whole.text.count("\n1. Running")) == (2, "", 1)
        assert (await memory.ask("skills", Skills(name="../alice"), SkillsAre)).skills == ()

        file.write_text(file.read_text().replace("## Steps\n", "## Steps\n\n- Ask Mina first.\n"))
        async with asyncio.timeout(30):
            while (
                "Ask Mina first" not in (await memory.ask("skills", Skills(name=one.name), SkillsAre)).skills[0].text
            ):
                await memory.settled(30, layers=["l2"])

        await memory.forget(turn=["t0", "t1"])
        await memory.settled(30, layers=["l2"])

    assert list((home.spaces / "alice" / "skills").glob("*")) == []
