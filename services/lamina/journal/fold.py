"""What the journal keeps of an event: a line of the ledger, a row of the index. Pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina.errors import Invalid
from lamina.events import Blob, Event, MemoryForgotten, MemoryStated, SessionEnded, Text, ToolReturned, TurnRecorded
from lamina.runtime import Add, Append, Change, Drop, Key, Put, Recorded, Rows
from lamina.store import Table
from lamina.text import FTS_SCHEMA, Previous, document
from lamina.times import micros, text_of_micros

VERSION = 4
MAX_TEXT_CHARS = 256 * 1024
"""Of a longer turn the index holds the beginning; the ledger and the blob hold all of it."""
MAX_TOOL_CHARS = 4_000
MAX_ARGUMENT_CHARS = 1_000

EVENTS = Table(
    name="events",
    columns=("id", "seq", "sha256"),
    key=1,
    ddl="CREATE TABLE events(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, sha256 TEXT NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE INDEX events_seq ON events(seq)",
)
TURNS = Table(
    name="turns",
    columns=(
        *("seq", "id", "type", "session", "role", "name", "turn_id"),
        *("agent", "project", "time", "time_us", "at_us", "position", "text"),
    ),
    key=1,
    ddl="""CREATE TABLE turns(
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, type TEXT NOT NULL, session TEXT NOT NULL, role TEXT NOT NULL,
  name TEXT NOT NULL, turn_id TEXT NOT NULL, agent TEXT NOT NULL, project TEXT NOT NULL, time TEXT NOT NULL,
  time_us INTEGER NOT NULL, at_us INTEGER NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX turns_session ON turns(session, position);
CREATE INDEX turns_time ON turns(time_us)""",
)
INDEX = Table(name="turns_fts", columns=("rowid", "own", "before"), key=1, ddl=FTS_SCHEMA)
SESSIONS = Table(
    name="sessions",
    columns=("session", "turns", "previous", "last_us", "ended"),
    key=1,
    ddl="CREATE TABLE sessions(session TEXT PRIMARY KEY, turns INTEGER NOT NULL, previous TEXT, "
    "last_us INTEGER NOT NULL, ended INTEGER NOT NULL) STRICT, WITHOUT ROWID",
)
CONFLICTS = Table(
    name="conflicts",
    columns=("seq", "id", "sha256"),
    key=1,
    ddl="CREATE TABLE conflicts(seq INTEGER PRIMARY KEY, id TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT",
)
TABLES = (EVENTS, TURNS, INDEX, SESSIONS, CONFLICTS)


class State(Struct, frozen=True):
    """The day of the ledger's last line: a clock that goes back never reopens an earlier file."""

    day: str = ""


def needs(recorded: Recorded) -> Sequence[Key]:
    """Has this id been seen, and what did the session say last?"""
    if recorded.event is None:
        return ()
    return (("events", (recorded.event.id,)), ("sessions", (recorded.event.session,)))


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    """The ledger line of every event but a repetition, and the index rows of what was said first under its id."""
    arrived = text_of_micros(recorded.at_us)
    day = max(state.day, arrived[:10])
    head = b'{"seq":%d,"at":"%s",' % (recorded.seq, arrived.encode())
    event = recorded.event
    if event is None:
        line = head + b'"malformed":"' + base64.b64encode(recorded.raw) + b'"}\n'
        return State(day), (Append(f"{day}.jsonl", recorded.seq, line),)
    known = rows.get("events", (event.id,))
    if known is not None and known[2] == event.sha256:
        return state, ()
    written = Append(f"{day}.jsonl", recorded.seq, head + b'"event":' + recorded.raw + b"}\n")
    if known is not None:
        return State(day), (written, Put("conflicts", (recorded.seq, event.id, event.sha256)))
    changes: list[Change] = [
        written,
        Put("events", (event.id, recorded.seq, event.sha256)),
    ]
    if isinstance(recorded.data, SessionEnded):
        row = rows.get("sessions", (event.session,)) or (event.session, 0, None, 0, 0)
        changes.append(Put("sessions", (*row[:4], 1)))
    elif isinstance(recorded.data, MemoryForgotten):
        changes.extend(change for id in recorded.data.ids for change in _forgotten(id, rows))
    else:
        changes.extend(_said(event, recorded, rows))
    return State(day), changes


def _said(event: Event, recorded: Recorded, rows: Rows) -> Sequence[Change]:
    """The rows of a turn, a tool result or a stated memory; nothing for other events."""
    data = recorded.data
    name = turn_id = ""
    if isinstance(data, TurnRecorded):
        role, name, turn_id = data.role, data.name or "", data.turn_id or ""
        text = _text(data.text, recorded)[:MAX_TEXT_CHARS]
    elif isinstance(data, ToolReturned):
        role, name, turn_id = "tool", data.tool, data.call_id or ""
        arguments = msgspec.json.encode(data.arguments).decode()[:MAX_ARGUMENT_CHARS]
        text = f"{data.tool} {arguments}\n{_text(data.result, recorded)}"[:MAX_TOOL_CHARS]
    elif isinstance(data, MemoryStated):
        role = "user"
        text = _text(data.text, recorded)[:MAX_TEXT_CHARS]
    else:
        return ()
    session = rows.get("sessions", (event.session,))
    before = Previous(session[2]) if session is not None and session[2] is not None else None
    entry = document(role, name or None, text, before)
    when = _when(event, recorded)
    turns = (session[1] if session is not None else 0) + 1
    return (
        Put(
            "turns",
            (
                *(recorded.seq, event.id, event.type, event.session, role, name, turn_id),
                *(event.agent, event.project, event.time, when, recorded.at_us, turns, text),
            ),
        ),
        Add("turns_fts", (recorded.seq, *entry.columns)),
        Put("sessions", (event.session, turns, entry.previous.text, when, 0)),
    )


def _forgotten(id: str, rows: Rows) -> Sequence[Change]:
    """Nobody finds it any more; what else tells of it goes when the view is folded anew."""
    known = rows.get("events", (id,))
    if known is None:
        return ()
    seq = known[1]
    return (Drop("events", (id,)), Drop("turns", (seq,)), Drop("turns_fts", (seq,)), Drop("conflicts", (seq,)))


def _when(event: Event, recorded: Recorded) -> int:
    """When it happened; when it came, where that cannot be read: the ledger holds every event all the same."""
    try:
        return micros(event.when)
    except Invalid:
        return recorded.at_us


def _text(text: Text, recorded: Recorded) -> str:
    """The text itself, or what its blob holds as far as it can be read as text."""
    if isinstance(text, Blob):
        return recorded.blobs.get(text.sha256, b"").decode("utf-8", "replace")
    return text
