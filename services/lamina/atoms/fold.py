"""What the atoms service keeps of each event: turns in their windows, and what was decided over them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lamina.atoms.derive import corrected, extracted, failed, forgotten, reconciled, retried, undone
from lamina.atoms.tables import OPEN, TABLES, WAITING, SessionRow, TurnRow, got, put
from lamina.atoms.windows import alone, placed
from lamina.atoms.work import State, Work, closed
from lamina.errors import Invalid
from lamina.events import (
    AtomsExtracted,
    AtomsReconciled,
    Blob,
    DeadRetried,
    Event,
    MemoryCorrected,
    MemoryForgotten,
    MemoryStated,
    MemoryUndone,
    SessionEnded,
    StepFailed,
    Text,
    ToolReturned,
    TurnRecorded,
)
from lamina.runtime import Change, Recorded, Rows
from lamina.times import micros

__all__ = ["MAX_TEXT_CHARS", "TABLES", "VERSION", "State", "fold"]

VERSION = 5
MAX_TEXT_CHARS = 64 * 1024
"""Of a longer turn its beginning is looked at."""
MAX_TOOL_CHARS = 8_000
MAX_ARGUMENT_CHARS = 1_000


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    """Rows of turns and windows for what was said, of atoms for what was decided, stated or taken back."""
    event, data = recorded.event, recorded.data
    change = _CHANGES.get(type(data))
    if event is None or change is None:
        return state, ()
    work = Work(state, rows)
    change(work, event, recorded, data)
    return work.state, work.changes()


def _turn(work: Work, event: Event, recorded: Recorded, data: TurnRecorded) -> None:
    text = _text(data.text, recorded)[:MAX_TEXT_CHARS]
    _said(work, _row(event, recorded, "turn", data.role, data.name or "", text), recorded.at_us)


def _tool(work: Work, event: Event, recorded: Recorded, data: ToolReturned) -> None:
    arguments = msgspec.json.encode(data.arguments).decode()[:MAX_ARGUMENT_CHARS]
    text = f"{data.tool} {arguments}\n{_text(data.result, recorded)}"[:MAX_TOOL_CHARS]
    _said(work, _row(event, recorded, "tool", "tool", data.tool, text), recorded.at_us)


def _said(work: Work, turn: TurnRow, at_us: int) -> None:
    """Put a turn into its window; the first of an id is the one that counts."""
    if not work.is_new(turn.id):
        return
    session = got(work.rows, SessionRow, turn.session) or SessionRow(turn.session)
    place = placed(
        session,
        work.window(session.window) if session.window else None,
        new=work.state.windows + 1,
        speaks=turn.kind == "turn",
        time_us=turn.time_us,
        at_us=at_us,
        chars=len(turn.text),
    )
    for window in (*place.closed, place.window):
        work.put_window(window)
    work.state = replace(work.state, windows=work.state.windows + place.opened)
    work.put(replace(turn, window=place.window.window))
    work.others.append(put(place.session))


def _stated(work: Work, event: Event, recorded: Recorded, data: MemoryStated) -> None:
    if not work.is_new(event.id):
        return
    window = alone(event.session, new=work.state.windows + 1, at_us=recorded.at_us)
    work.put_window(window)
    work.state = replace(work.state, windows=window.window)
    text = _text(data.text, recorded)[:MAX_TEXT_CHARS]
    work.put(replace(_row(event, recorded, "stated", "user", "", text), window=window.window))


def _ended(work: Work, event: Event, recorded: Recorded, data: SessionEnded) -> None:
    session = got(work.rows, SessionRow, event.session)
    window = work.window(session.window) if session is not None else None
    if window is not None and window.state == OPEN:
        work.put_window(closed(window))


def _row(event: Event, recorded: Recorded, kind: str, role: str, name: str, text: str) -> TurnRow:
    return TurnRow(
        id=event.id,
        seq=recorded.seq,
        session=event.session,
        kind=kind,
        role=role,
        name=name,
        agent=event.agent,
        project=event.project,
        time=event.time,
        time_us=when_us(event, recorded),
        window=0,
        outcome=WAITING,
        decision="",
        atoms="[]",
        corrected="",
        text=text,
    )


def when_us(event: Event, recorded: Recorded) -> int:
    """When it happened; when it came, where that cannot be read."""
    try:
        return micros(event.when)
    except Invalid:
        return recorded.at_us


def _text(text: Text, recorded: Recorded) -> str:
    if isinstance(text, Blob):
        return recorded.blobs.get(text.sha256, b"").decode("utf-8", "replace")
    return text


def _corrected(work: Work, event: Event, recorded: Recorded, data: MemoryCorrected) -> None:
    text = _text(data.text, recorded)[:MAX_TEXT_CHARS]
    corrected(work, event, recorded, data.target, text, when_us(event, recorded))


_CHANGES: dict[Any, Callable[[Work, Event, Recorded, Any], None]] = {
    TurnRecorded: _turn,
    ToolReturned: _tool,
    MemoryStated: _stated,
    SessionEnded: _ended,
    AtomsExtracted: extracted,
    AtomsReconciled: reconciled,
    StepFailed: failed,
    DeadRetried: retried,
    MemoryCorrected: _corrected,
    MemoryUndone: undone,
    MemoryForgotten: forgotten,
}
