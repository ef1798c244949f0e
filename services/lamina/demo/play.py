"""Playing a story: publish it as an agent would, wait until it is remembered, ask."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from lamina import ids
from lamina.client import Memory, Stub
from lamina.demo.records import Answer, Demo, FileInfo, Played, Reading, Seconds, Stubbed
from lamina.demo.story import Conversation, Happened, Story
from lamina.errors import Invalid, Timeout
from lamina.home import Home
from lamina.records import Hits
from lamina.requests import SessionPage, Sessions
from lamina.tokens import count

SETTLE_S = 12.0
DEADLINE_S = 3.0
ANSWERS = 2
READ_TOOL, READ_QUERY, READ_TOKENS = "run_tests", "assert copies harbour", 300


async def play(home: Home, story: Story, *, kept: bool, began: float, tell: Callable[[str], None]) -> Demo:
    """Play `story` into `home`; playing it again changes nothing. `tell` hears what is being done; `began` (of
    the monotonic clock) is when the daemon was started, if it was."""
    tell("starting the log and the services")
    async with Memory.open(space=story.space, home=home.path, agent="demo") as memory:
        opened = monotonic()
        tell("publishing the session")
        before = await memory.ask("sessions", Sessions(), SessionPage)
        ended = {session.session for session in before.sessions if session.ended}
        stubs: list[Stubbed] = []
        for conversation in story.sessions:
            stubs += await _publish(memory, conversation)
            if conversation.session not in ended:
                await memory.end_session(conversation.session)
        published = monotonic()
        tell("waiting until it is remembered")
        unsettled = await _settle(memory)
        settled = monotonic()
        tell("asking")
        answers = [
            Answer(language=question.language, question=question.text, hits=await _ask(memory, question.text))
            for question in story.questions
        ]
        asked = monotonic()
        reading = await _read(memory, stubs, known=not unsettled)
    return Demo(
        title=story.title,
        home=str(home.path),
        kept=kept,
        space=story.space,
        known=bool(before.sessions),
        seconds=Seconds(
            start=round(opened - began, 3),
            publish=round(published - opened, 3),
            settle=round(settled - published, 3),
            recall=round(asked - settled, 3),
        ),
        sessions=tuple(map(_played, story.sessions)),
        stubs=tuple(stubs),
        answers=tuple(answers),
        files=files_of(home, home.space(story.space)),
        reading=reading,
        canvas=_canvas(home, story),
        unsettled=unsettled,
    )


async def _publish(memory: Memory, conversation: Conversation) -> list[Stubbed]:
    stubs = []
    for event in conversation.events:
        if not event.tool:
            await memory.turn(
                event.role,
                event.text,
                session=conversation.session,
                name=event.name,
                time=event.time,
                turn_id=event.id,
            )
            continue
        result = event.result()
        stub = await memory.tool_result(
            event.tool,
            event.arguments,
            result,
            session=conversation.session,
            call_id=event.id,
            is_error=event.is_error,
            time=event.time,
        )
        stubs.append(_stubbed(event, result, stub))
    return stubs


def _stubbed(event: Happened, result: str, stub: Stub) -> Stubbed:
    return Stubbed(
        node=stub.node,
        tool=event.tool,
        original_tokens=count(result),
        original_chars=len(result),
        stub_tokens=count(stub.text),
        stub_chars=len(stub.text),
        text=stub.text,
    )


async def _settle(memory: Memory) -> str:
    """Empty, or what was not digested in time. Of vectors that lack, recall itself says so."""
    try:
        await memory.settled(timeout_s=SETTLE_S)
        with contextlib.suppress(Invalid, Timeout):
            await memory.settled(timeout_s=SETTLE_S, layers=["vectors"])
    except Timeout as error:
        return str(error)
    return ""


async def _ask(memory: Memory, question: str) -> Hits:
    return await memory.recall(question, limit=ANSWERS, deadline_s=DEADLINE_S)


async def _read(memory: Memory, stubs: list[Stubbed], *, known: bool) -> Reading:
    """Lines of the failed test; empty where the result is not kept yet."""
    node = next(stub.node for stub in stubs if stub.tool == READ_TOOL)
    text = (await memory.read(node, query=READ_QUERY, max_tokens=READ_TOKENS)).text if known else ""
    return Reading(node=node, query=READ_QUERY, text=text)


def _canvas(home: Home, story: Story) -> str:
    """The chart of the first session; empty where it is not drawn yet."""
    path = home.space(story.space) / "canvas" / f"{ids.token(story.sessions[0].session)}.mmd"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _played(conversation: Conversation) -> Played:
    tools = sum(bool(event.tool) for event in conversation.events)
    return Played(
        session=conversation.session,
        language=conversation.language,
        turns=len(conversation.events) - tools,
        tool_results=tools,
    )


def files_of(home: Home, folder: Path) -> tuple[FileInfo, ...]:
    """The files of a space that are there to be read, by path; what SQLite and locks keep beside them is left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        hidden = path.name.startswith(".") or path.name.endswith(("-wal", "-shm")) or path.is_symlink()
        if path.is_file() and not hidden:
            found.append(FileInfo(path=path.relative_to(home.path).as_posix(), size_bytes=path.stat().st_size))
    return tuple(found)
