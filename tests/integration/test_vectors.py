"""Hybrid recall through the client, with an endpoint that works, fails, and heals; and what is lost comes back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from lamina.cli.state import EmbeddingStatus, look
from lamina.cli.status import embedding_line
from lamina.client import Memory
from lamina.errors import Timeout
from lamina.home import Home
from lamina.records import Where
from tests.support.embeddings import Fake, endpoint
from tests.support.whole import daemon

WAIT_S = 60.0


@pytest.fixture(autouse=True)
def _configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAMINA_EMBEDDING_PROVIDER")


@pytest.fixture
def fake() -> Iterator[Fake]:
    with endpoint() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, fake: Fake) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    configure(made, fake)
    return made


def configure(home: Home, fake: Fake, model: str = "m") -> None:
    home.config.write_text(
        f'[embedding]\nprovider = "endpoint"\nbase_url = "{fake.url}"\nmodel = "{model}"\n', encoding="utf-8"
    )


@pytest_asyncio.fixture
async def memory(home: Home) -> AsyncIterator[Memory]:
    async with daemon(home), Memory.open(space="alice", home=home.path) as opened:
        yield opened


def caches(home: Home, space: str = "alice") -> list[Path]:
    return sorted((home.spaces / space / "cache").glob("embeddings-*.db"))


async def filled(memory: Memory, turns: int = 20) -> None:
    for n in range(turns):
        await memory.turn("user", f"note {n}: the {('red', 'blue', 'green')[n % 3]} door is number {n}", session="s")
    await memory.settled(WAIT_S, layers=["vectors"])


async def test_every_turn_has_a_vector_and_every_item_says_what_it_counted(memory: Memory, fake: Fake) -> None:
    await filled(memory)
    hits = await memory.recall("which blue door?", deadline_s=WAIT_S)

    assert hits.status == "found"
    assert hits.degraded == ()
    assert all("blue" in item.text for item in hits.items[:5])
    for item in hits.items:
        assert item.parts["vector"] > 0
        assert sum(item.parts.values()) == pytest.approx(item.score)
    assert fake.texts == 20 + 2  # the probe and the question


async def test_no_extension_of_sqlite_is_needed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    await filled(memory, 3)
    hits = await memory.recall("which blue door?", deadline_s=WAIT_S)

    assert hits.degraded == ()
    assert any(item.parts["vector"] > 0 for item in hits.items)


async def test_the_same_text_is_embedded_once(memory: Memory, fake: Fake) -> None:
    for n in range(5):
        await memory.turn("user", "the same words", session=f"s{n}")
    await memory.settled(WAIT_S)
    await memory.settled(WAIT_S, layers=["vectors"])
    hits = await memory.recall("same words", deadline_s=WAIT_S)

    assert fake.texts == 1 + 1 + 1
    assert hits.degraded == ()


async def test_filters_hold_for_both_legs(memory: Memory) -> None:
    await memory.turn("user", "a red door", session="one")
    await memory.turn("user", "a red wall", session="two")
    await memory.settled(WAIT_S)
    await memory.settled(WAIT_S, layers=["vectors"])
    hits = await memory.recall("red door", where=Where(sessions=("two",)), deadline_s=WAIT_S)
    none = await memory.recall("red door", where=Where(sessions=("three",)), deadline_s=WAIT_S)

    assert [item.session for item in hits.items] == ["two"]
    assert none.status == "none"


async def test_an_endpoint_that_fails_is_named_and_keywords_answer(memory: Memory, fake: Fake) -> None:
    await filled(memory)
    fake.status = 429
    hits = await memory.recall("which blue door?", deadline_s=WAIT_S)
    requests = fake.requests
    again = await memory.recall("which red door?", deadline_s=WAIT_S)

    assert hits.status == again.status == "found"
    assert [part.part for part in hits.degraded] == ["vectors"]
    assert "429" in hits.degraded[0].why
    assert fake.requests == requests  # put aside: it is not asked for every question


async def test_a_slow_endpoint_does_not_hold_up_the_answer(memory: Memory, fake: Fake) -> None:
    await filled(memory)
    fake.gate.clear()
    try:
        hits = await memory.recall("which blue door?", deadline_s=2.0)
    finally:
        fake.gate.set()

    assert hits.status == "found"
    assert "not embedded in time" in hits.degraded[0].why


async def test_what_could_not_be_embedded_is_as_soon_as_it_can(memory: Memory, fake: Fake) -> None:
    fake.status = 503
    await memory.turn("user", "a blue door", session="s")
    await memory.settled(WAIT_S)
    with pytest.raises(Timeout, match="vectors are being made"):
        await memory.settled(0.3, layers=["vectors"])
    hits = await memory.recall("blue", deadline_s=WAIT_S)
    fake.status = 200
    await memory.settled(WAIT_S, layers=["vectors"])
    healed = await memory.recall("blue", deadline_s=WAIT_S)

    assert hits.status == healed.status == "found"
    assert [part.part for part in hits.degraded] == ["vectors"]
    assert healed.degraded == ()


async def test_vectors_of_another_size_are_refused_and_then_made_anew(home: Home, fake: Fake) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await filled(memory, 3)
        fake.dims = 32
        hits = await memory.recall("blue door", deadline_s=WAIT_S)
        await memory.turn("user", "one more blue door", session="s")
        await memory.settled(WAIT_S, layers=["vectors"])
        healed = await memory.recall("blue door", deadline_s=WAIT_S)

    assert "32 numbers, 64 before" in hits.degraded[0].why
    assert healed.degraded == ()
    assert [path.name.rsplit("-", 1)[1] for path in caches(home)] == ["32.db"]


async def test_another_model_is_built_beside_the_old_one_and_then_replaces_it(home: Home, fake: Fake) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await filled(memory, 5)
    first = caches(home)
    configure(home, fake, "other")
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.settled(WAIT_S)
        await memory.settled(WAIT_S, layers=["vectors"])
        hits = await memory.recall("blue door", deadline_s=WAIT_S)

    assert hits.degraded == ()
    assert len(caches(home)) == 1
    assert caches(home) != first


@pytest.mark.parametrize("trouble", ["down", "held"])
async def test_the_old_model_answers_until_the_new_vectors_are_whole(home: Home, fake: Fake, trouble: str) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await filled(memory, 5)
    (old,) = caches(home)
    configure(home, fake, "other")
    setattr(fake, trouble, "other")
    if fake.held:
        fake.gate.clear()
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.settled(WAIT_S)
        before = await memory.recall("blue door", deadline_s=WAIT_S)
        fake.down = fake.held = ""
        fake.gate.set()
        await memory.settled(WAIT_S, layers=["vectors"])
        after = await memory.recall("blue door", deadline_s=WAIT_S)

    assert before.degraded == after.degraded == ()
    assert [item.id for item in before.items] == [item.id for item in after.items]
    assert any(item.parts["vector"] > 0 for item in before.items)
    assert old not in caches(home)


async def test_a_view_that_is_deleted_while_it_is_in_use_is_said_and_comes_back(memory: Memory, home: Home) -> None:
    await filled(memory)
    for path in (home.spaces / "alice" / "views").glob("vectors*"):
        path.unlink()
    hits = await memory.recall("which blue door?", deadline_s=WAIT_S)
    await memory.turn("user", "one more blue door", session="s")
    await memory.settled(WAIT_S, layers=["vectors"])
    healed = await memory.recall("which blue door?", deadline_s=WAIT_S)

    assert hits.status == healed.status == "found"
    assert healed.degraded == ()


async def test_a_deleted_view_comes_back_from_the_cache_without_the_model(home: Home, fake: Fake) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await filled(memory)
    for path in (home.spaces / "alice" / "views").glob("vectors*"):
        path.unlink()
    texts = fake.texts
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.settled(WAIT_S, layers=["vectors"])
        hits = await memory.recall("which blue door?", deadline_s=WAIT_S)

    assert hits.degraded == ()
    assert fake.texts == texts + 1  # the question


async def test_a_deleted_or_broken_cache_is_made_again_once_it_is_asked(memory: Memory, home: Home) -> None:
    await filled(memory)
    for path in (home.spaces / "alice" / "cache").iterdir():
        path.unlink()
    hits = await memory.recall("blue", deadline_s=WAIT_S)
    await memory.settled(WAIT_S, layers=["vectors"])
    healed = await memory.recall("blue", deadline_s=WAIT_S)
    for path in (home.spaces / "alice" / "cache").iterdir():
        path.unlink()  # whoever has it open keeps the old one: writing into a mapped file would be a SIGBUS
        path.write_bytes(b"no database at all" * 500)
    broken = await memory.recall("blue", deadline_s=WAIT_S)
    await memory.settled(WAIT_S, layers=["vectors"])
    again = await memory.recall("blue", deadline_s=WAIT_S)

    assert hits.status == healed.status == broken.status == again.status == "found"
    assert {part.part for part in (*hits.degraded, *broken.degraded)} <= {"vectors"}  # it may be whole again already
    assert healed.degraded == again.degraded == ()


async def test_status_says_how_far_the_vectors_are_and_why_they_are_put_aside(
    memory: Memory, home: Home, fake: Fake
) -> None:
    await filled(memory)
    well = await _told(home, "idle")
    fake.status = 503
    await memory.turn("user", "one more", session="s")
    ill = await _told(home, "put aside")

    assert (well.embedded, well.waiting, well.why) == (20, 0, "")
    assert well.model.startswith("endpoint-m-")
    assert ill.waiting >= 1
    assert "503" in ill.why
    assert "503" in embedding_line(ill)


async def _told(home: Home, state: str) -> EmbeddingStatus:
    async with asyncio.timeout(WAIT_S):
        while True:
            (service,) = (one for one in (await look(home)).services if one.name == "vectors")
            if [one.state for one in service.embedding] == [state]:
                return service.embedding[0]


async def test_spaces_share_the_model_fairly(home: Home, fake: Fake) -> None:
    async with (
        daemon(home),
        Memory.open(space="large", home=home.path) as large,
        Memory.open(space="small", home=home.path) as small,
    ):
        fake.gate.clear()
        await asyncio.gather(*(large.turn("user", f"large {n}", session="s") for n in range(400)))
        await small.turn("user", "small", session="s")
        await large.settled(WAIT_S)
        fake.gate.set()
        await small.settled(WAIT_S, layers=["vectors"])
        waiting = fake.texts
        await large.settled(WAIT_S, layers=["vectors"])

    assert waiting < 400
    assert fake.texts == 402


@pytest.mark.parametrize("query", ["", " ", "?!", "🦊", "\x00", 'NEAR(a b) AND * OR "', "the of and", "가" * 9_000])
async def test_any_question_gets_an_answer(memory: Memory, query: str) -> None:
    await memory.turn("user", "a blue door", session="s")
    await memory.settled(WAIT_S)
    await memory.settled(WAIT_S, layers=["vectors"])
    hits = await memory.recall(query, deadline_s=WAIT_S)

    assert hits.status in ("found", "none")
    assert hits.degraded == ()


async def test_a_prompt_block_is_given_once_a_session_and_never_recorded(memory: Memory) -> None:
    await memory.turn("user", "the blue door is locked", session="s")
    await memory.turn("user", "the blue key is lost", session="s")
    await memory.settled(WAIT_S)
    await memory.settled(WAIT_S, layers=["vectors"])
    first = await memory.recall("blue", session="new", limit=1, format="prompt", deadline_s=WAIT_S)
    second = await memory.recall("blue", session="new", limit=1, format="prompt", deadline_s=WAIT_S)
    third = await memory.recall("blue", session="new", limit=1, format="prompt", deadline_s=WAIT_S)
    other = await memory.recall("blue", session="other", limit=1, format="prompt", deadline_s=WAIT_S)
    await memory.turn("user", f"{first.text}\nWhich door?", session="new", turn_id="q")

    assert len({first.items[0].id, second.items[0].id}) == 2
    assert (third.status, third.text) == ("none", "")
    assert [item.id for item in other.items] == [item.id for item in first.items]
    assert "locked" in first.text + second.text
    await memory.settled(WAIT_S)
    assert (await memory.why("q"))[0].text == "Which door?"


async def test_what_a_session_was_given_by_one_client_is_not_given_by_the_next(memory: Memory, home: Home) -> None:
    """A hook is a process of its own each time."""
    await memory.turn("user", "the blue door is locked", session="s")
    await memory.settled(WAIT_S)
    first = await memory.recall("blue", session="new", format="prompt", deadline_s=WAIT_S)
    async with Memory.open(space=memory.space, home=home.path) as other:
        second = await other.recall("blue", session="new", format="prompt", deadline_s=WAIT_S)
        items = await other.recall("blue", session="new", deadline_s=WAIT_S)

    assert [item.text for item in first.items] == ["the blue door is locked"]
    assert (second.status, second.text) == ("none", "")
    assert [item.text for item in items.items] == ["the blue door is locked"]  # whoever asks for items is given them


async def test_several_spaces_answer_in_one(memory: Memory, home: Home) -> None:
    await memory.turn("user", "a blue door", session="s")
    await memory.settled(WAIT_S)
    async with Memory.open(space="team", home=home.path) as team:
        await team.turn("user", "a blue gate", session="s")
        await team.settled(WAIT_S)
    hits = await memory.recall("blue", spaces=["alice", "team", "nobody"], deadline_s=WAIT_S)

    assert [(item.space, item.text) for item in hits.items] == [("alice", "a blue door"), ("team", "a blue gate")]
