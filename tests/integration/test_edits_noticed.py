"""What a person does to `persona.md`: noticed once, kept for ever, never written over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lamina.bus import Bus
from lamina.errors import Unavailable
from lamina.home import Home
from lamina.persona.fold import State
from lamina.runtime import edits
from lamina.runtime.worker import Worker
from tests.support.persona import PersonaBench, worded_act
from tests.support.toy import applied, running, until


@pytest.fixture
async def persona(home: Home) -> PersonaBench:
    made = PersonaBench(home)
    await made.say("always: answer in Korean\nlikes tea\nuser.home=Seoul", session="s1", id="t1")
    await made.end("s1")
    await made.run()
    return made


@asynccontextmanager
async def editor(persona: PersonaBench) -> AsyncIterator[Worker[State]]:
    """Workers of atoms and persona; the edit loop of the latter looks when it is told to, and every two seconds."""
    worker = persona.persona()
    async with running(persona.worker(worded_act())), running(worker):
        await until(worker.follower.caught_up.is_set)
        yield worker


async def looked(persona: PersonaBench, worker: Worker[State]) -> None:
    """One look, and what follows of it."""
    assert worker.editor is not None
    await worker.editor.look()
    await until(
        lambda: applied(persona.home, "alice", "persona") >= persona.log.last_seq and not persona.shape().pending
    )


def edited(persona: PersonaBench, old: str, new: str) -> None:
    text = persona.text()
    assert old in text
    persona.file.write_text(text.replace(old, new), encoding="utf-8")


def events_of(persona: PersonaBench) -> list[Any]:
    return persona._decided("persona.edited")


async def test_a_changed_an_added_and_a_removed_line_are_one_event_and_stand(persona: PersonaBench) -> None:
    async with editor(persona) as worker:
        edited(persona, "user.home=Seoul", "Lives in Jeju")
        edited(persona, "- answer in Korean", "- be kind\n- answer in Korean")
        edited(persona, persona.line("tea") + "\n", "")
        await looked(persona, worker)
        await looked(persona, worker)

        (event,) = events_of(persona)
        assert [line[:13] for line in event.removed] == ["- user.home=S", "- likes tea ·"] or len(event.removed) == 2
        assert persona.sections() == {
            "Standing instructions": ["answer in Korean", "be kind"],
            "Identity and context": ["Lives in Jeju"],
        }
        await looked(persona, worker)
        assert len(events_of(persona)) == 1

    text = persona.text()
    persona.lose_view()
    async with persona.folding():
        assert persona.text() == text


async def test_what_is_written_meanwhile_does_not_cost_the_edit(persona: PersonaBench) -> None:
    """The fold has news for the file that a person is just editing."""
    edited(persona, "user.home=Seoul", "Lives in Jeju")
    await persona.say("always: be brief", session="s2", id="t2")
    await persona.end("s2")
    await persona.run()

    async with editor(persona) as worker:
        await looked(persona, worker)
        assert persona.sections()["Identity and context"] == ["likes tea", "Lives in Jeju"]
        assert sorted(persona.sections()["Standing instructions"]) == ["answer in Korean", "be brief"]
        assert len(events_of(persona)) == 1
        assert edits.aside(persona.file.parent, "persona.md") == []


async def test_an_editor_that_saves_an_older_version_takes_nothing_newer_out(persona: PersonaBench) -> None:
    older = persona.text()
    await persona.say("always: be brief", session="s2", id="t2")
    await persona.end("s2")
    await persona.run()
    persona.file.write_text(older.replace("likes tea", "likes wine"), encoding="utf-8")

    async with editor(persona) as worker:
        await looked(persona, worker)
        assert "be brief" in persona.sections()["Standing instructions"]
        assert "likes wine" in persona.sections()["Identity and context"]
        assert "likes tea" not in persona.text()


async def test_an_edit_of_an_edit_is_told_by_itself(persona: PersonaBench) -> None:
    async with editor(persona) as worker:
        assert worker.editor is not None
        edited(persona, "likes tea", "likes tea\n- likes wine")
        first = persona.text()
        await looked(persona, worker)
        persona.file.write_text(first.replace("likes wine", "likes beer"), encoding="utf-8")
        await looked(persona, worker)

        assert persona.sections()["Identity and context"].count("likes beer") == 1
        assert "wine" not in persona.text()


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a\x00", b"", b"x" * 200_000])
async def test_a_broken_file_is_put_back_and_kept_beside(persona: PersonaBench, data: bytes) -> None:
    text = persona.text()
    persona.file.write_bytes(data)

    async with editor(persona) as worker:
        await looked(persona, worker)

    assert persona.text() == text
    (kept,) = persona.file.parent.glob(f"persona.md{edits.BROKEN}*")
    assert kept.read_bytes() == data
    assert events_of(persona) == []


async def test_a_file_that_is_gone_or_lost_its_seal_is_put_back(persona: PersonaBench) -> None:
    text = persona.text()
    async with editor(persona) as worker:
        await looked(persona, worker)
        persona.file.unlink()
        await looked(persona, worker)
        assert persona.text() == text

        persona.file.write_text(text.rsplit("\n<!--", 1)[0], encoding="utf-8")
        await looked(persona, worker)
        assert persona.text() == text
        assert events_of(persona) == []


async def test_an_edit_that_was_noted_is_published_by_whoever_comes_after_a_crash(persona: PersonaBench) -> None:
    async with editor(persona) as worker:
        assert worker.editor is not None
        worker.editor._bus = Away(worker.editor._bus)  # type: ignore[assignment]
        edited(persona, "likes tea", "likes wine")  # now: the editor looks by itself too
        await worker.editor.look()
        assert events_of(persona) == []

    async with editor(persona) as worker:
        await looked(persona, worker)
        assert len(events_of(persona)) == 1
        assert "likes wine" in persona.text()


class Away:
    """A log that can be read and takes nothing."""

    def __init__(self, bus: Bus) -> None:
        self.last = bus.last

    async def publish(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("the log is away")


async def test_what_is_forgotten_does_not_come_back_with_an_old_copy(persona: PersonaBench) -> None:
    older = persona.text()
    await persona.forget("t1")
    await persona.run()
    assert "Korean" not in persona.text()

    persona.file.write_text(older.replace("# Persona\n", "# Persona\n\n- likes rain\n"), encoding="utf-8")
    async with editor(persona) as worker:
        await looked(persona, worker)
        assert "Korean" not in persona.text()
        assert "likes rain" in persona.text()
