"""Second thoughts: other atoms from the same sources, beside what stands, compared, adopted for ever or dropped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.client import Memory
from lamina.errors import Conflict, Invalid, Unavailable
from lamina.home import Home
from lamina.rebuild.home import connected, rebuild
from lamina.records import AsOf
from lamina.rederive.adopt import adopt
from lamina.rederive.diff import difference
from lamina.rederive.run import rederive, settings
from lamina.rederive.shadow import Shadow, names
from lamina.requests import Atoms, AtomsAre
from lamina.runtime.registry import fold_services
from lamina.verify.digests import digest
from lamina.verify.run import verify
from tests.support.atoms import plain_service
from tests.support.mixed import files
from tests.support.toy import rows, view_file
from tests.support.whole import daemon

SPACE = "alice"
SAID = ("I live in Lisbon.", "hm, the weather", "My cat is called Tapioca.", "we use PostgreSQL at work\nit rains")


@pytest.fixture
async def alice(home: Home) -> AsyncIterator[Memory]:
    async with daemon(home), Memory.open(space=SPACE, home=home.path) as memory:
        for n, text in enumerate(SAID):
            await memory.turn("user", text, session="s", turn_id=f"t{n}")
        await memory.end_session("s")
        await memory.settled(30)
        yield memory


async def again(home: Home, name: str = "second") -> Any:
    async with connected(home) as bus:
        return await rederive(home, bus, SPACE, name, {}, service=plain_service())


def standing(path: Path) -> set[str]:
    return {row[0] for row in rows(path, "SELECT text FROM atoms WHERE status IN ('active', 'contradicted')")}


def everything(home: Home) -> Any:
    views = {name: digest(view_file(home, SPACE, name)) for name in fold_services()}
    kept = {name: raw for name, raw in files(home.spaces / SPACE).items() if not name.startswith("shadow/")}
    return views, kept


async def test_a_shadow_changes_nothing_that_stands_and_goes_on(home: Home, alice: Memory) -> None:
    before = everything(home)

    first = await again(home)

    assert everything(home) == before
    assert standing(Shadow(home, SPACE, "second").view("atoms")) == {
        "I live in Lisbon.",
        "My cat is called Tapioca.",
        "we use PostgreSQL at work",
        "it rains",
    }
    assert (first.atoms, first.waiting, first.decisions) == (4, 0, first.made)
    assert (await again(home)).made == 0
    await alice.turn("user", "I was never here.", session="s2")
    await alice.end_session("s2")
    more = await again(home)
    assert (more.atoms, more.seq > first.seq, more.decisions) == (5, True, first.decisions + more.made)
    assert names(home.spaces / SPACE) == ["second"]


async def test_a_difference_tells_atoms_with_their_words_and_what_they_cost(home: Home, alice: Memory) -> None:
    await again(home)
    live = standing(view_file(home, SPACE, "atoms"))

    async with connected(home) as bus:
        found = await difference(home, bus, SPACE, "second")

    shadow = standing(Shadow(home, SPACE, "second").view("atoms"))
    assert found.same + found.changed + found.lost == len(live)
    assert found.same + found.changed + found.gained == len(shadow)
    assert {one.after for one in found.atoms if one.what == "gained"} <= shadow - live
    assert "it rains" in {one.after for one in found.atoms}
    assert all(one.evidence and one.evidence[0].text in SAID for one in found.atoms)
    assert (found.behind, found.before.by[0], found.after.by[-1]) == (0, "builtin", "plain")


async def test_what_is_adopted_holds_and_a_replay_gives_the_same(home: Home, alice: Memory) -> None:
    await again(home)
    shadow = standing(Shadow(home, SPACE, "second").view("atoms"))
    live = standing(view_file(home, SPACE, "atoms"))
    before = (await alice.recall("x")).as_of_seq

    async with connected(home) as bus:
        told = await adopt(home, bus, SPACE, "second")
        await alice.settled(30)
        assert standing(view_file(home, SPACE, "atoms")) == shadow
        assert (told.atoms, told.undone > 0, names(home.spaces / SPACE)) == (len(shadow), True, [])
        wanted = everything(home)[0]
        await rebuild(
            home, bus, views=list(fold_services()), spaces=[SPACE], moved=lambda _: None, done=lambda _: None
        )
        assert everything(home)[0] == wanted
        assert (await verify(home, bus, [SPACE])).findings == ()
    hits = await alice.recall("Tapioca", layers=["l1"])
    assert [item.text for item in hits.items] == ["My cat is called Tapioca."]
    (link, *_) = await alice.why(hits.items[0].id)
    assert link.by
    assert await texts(alice, AsOf(seq=before)) == live


async def test_what_was_corrected_stays_corrected(home: Home, alice: Memory) -> None:
    (old,) = [one for one in await atoms(alice) if "Lisbon" in one.text]
    await alice.correct(old.id, "I live in Porto.")
    await alice.settled(30)
    await again(home)

    async with connected(home) as bus:
        await adopt(home, bus, SPACE, "second")
    await alice.settled(30)

    found = standing(view_file(home, SPACE, "atoms"))
    assert "I live in Porto." in found
    assert "I live in Lisbon." not in found


async def test_what_was_adopted_loses_only_what_is_forgotten(home: Home, alice: Memory) -> None:
    await again(home)
    async with connected(home) as bus:
        await adopt(home, bus, SPACE, "second")
        receipt = await alice.forget(turn="t2")
        await alice.settled(30)
        assert receipt.found == ()
        assert (await verify(home, bus, [SPACE])).findings == ()
    found = " ".join(standing(view_file(home, SPACE, "atoms")))
    assert "Lisbon" in found
    assert "Tapioca" not in found


async def test_what_came_since_must_be_seen_first(home: Home, alice: Memory) -> None:
    await again(home)
    await alice.remember("I play the cello")
    await alice.settled(30)
    async with connected(home) as bus:
        with pytest.raises(Conflict, match="rederive second"):
            await adopt(home, bus, SPACE, "second")
        await again(home)
        await adopt(home, bus, SPACE, "second")
    assert "I play the cello" in standing(view_file(home, SPACE, "atoms"))


async def test_failures_are_told_and_what_was_decided_is_kept(home: Home, alice: Memory) -> None:
    async def away(*_: Any) -> Any:
        raise Unavailable("the model is away")

    async with connected(home) as bus:
        with pytest.raises(Unavailable, match="the model is away"):
            await rederive(home, bus, SPACE, "second", {}, service=plain_service(away))
        assert (await again(home)).atoms == 0 or (await again(home)).waiting == 0


async def test_a_shadow_is_dropped_and_forgotten_with_what_it_knew(home: Home, alice: Memory) -> None:
    await again(home)
    await Shadow(home, SPACE, "second").drop()
    with pytest.raises(Invalid, match="no shadow 'second'"):
        await Shadow(home, SPACE, "second").drop()

    await again(home, "third")
    receipt = await alice.forget(turn="t2")
    assert receipt.found == ()
    assert names(home.spaces / SPACE) == []


async def test_settings_are_those_of_the_configuration(home: Home) -> None:
    assert settings(["llm.model=a=b"]) == {"llm.model": "a=b"}
    for wrong in ("llm.model", "llm.no=1", "=", "model=x"):
        with pytest.raises(Invalid):
            settings([wrong])


async def atoms(memory: Memory, as_of: AsOf | None = None) -> list[Any]:
    while True:
        try:
            return list((await memory.ask("atoms", Atoms(as_of=as_of), AtomsAre)).atoms)
        except Unavailable:
            continue


async def texts(memory: Memory, as_of: AsOf) -> set[str]:
    return {one.text for one in await atoms(memory, as_of)}
