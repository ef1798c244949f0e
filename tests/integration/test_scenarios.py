"""Scenarios over a real daemon: from what is said to a file, to `why` and back."""

from __future__ import annotations

import pytest

from lamina.client import Memory
from lamina.home import Home
from lamina.requests import Scenarios, ScenariosAre
from tests.support.whole import daemon

STORY = {
    "monday": (
        "We are moving the orders database to PostgreSQL 16.",
        "The migration of the orders database uses pg_dump with four parallel jobs.",
    ),
    "cats": ("My cat Momo only eats tuna.", "Momo sleeps on the red sofa."),
    "friday": (
        "The pg_dump of the orders database took four hours.",
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
    assert whole.text == (home.spaces / "alice" / whole.path).read_text(encoding="utf-8")
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
