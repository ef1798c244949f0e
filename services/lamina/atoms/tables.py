"""The rows of the `atoms` view, and what turns a row into a struct and back. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lamina.runtime import Put, Rows
from lamina.store import Table

R = TypeVar("R", bound=Struct)

WAITING, EXTRACTED, PARKED = 0, 1, 2
"""Outcomes of a turn: each has exactly one of them."""
OPEN, CLOSED, FIRST = 0, 1, 2
"""States of a window: it may grow, it is due, it is due before those that are merely closed."""

TURNS = Table(
    name="turns",
    columns=(
        *("id", "seq", "session", "kind", "role", "name", "agent", "project", "time", "time_us"),
        *("window", "outcome", "decision", "atoms", "corrected", "text"),
    ),
    key=1,
    ddl="""CREATE TABLE turns(
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, session TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
  name TEXT NOT NULL, agent TEXT NOT NULL, project TEXT NOT NULL, time TEXT NOT NULL, time_us INTEGER NOT NULL,
  window INTEGER NOT NULL, outcome INTEGER NOT NULL, decision TEXT NOT NULL, atoms TEXT NOT NULL,
  corrected TEXT NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX turns_waiting ON turns(window, seq) WHERE outcome = 0;
CREATE INDEX turns_outcome ON turns(outcome);
CREATE INDEX turns_session ON turns(session, seq)""",
)
"""`text` is whole while the turn waits; then its beginning stays, as context of what follows it."""
SESSIONS = Table(
    name="sessions",
    columns=("session", "window", "turns", "last_us"),
    key=1,
    ddl="CREATE TABLE sessions(session TEXT PRIMARY KEY, window INTEGER NOT NULL, turns INTEGER NOT NULL, "
    "last_us INTEGER NOT NULL) STRICT, WITHOUT ROWID",
)
WINDOWS = Table(
    name="windows",
    columns=("window", "session", "state", "turns", "events", "chars", "at_us"),
    key=1,
    ddl="""CREATE TABLE windows(
  window INTEGER PRIMARY KEY, session TEXT NOT NULL, state INTEGER NOT NULL, turns INTEGER NOT NULL,
  events INTEGER NOT NULL, chars INTEGER NOT NULL, at_us INTEGER NOT NULL) STRICT;
CREATE INDEX windows_due ON windows(state DESC, window);
CREATE INDEX windows_idle ON windows(at_us) WHERE state = 0""",
)
"""Windows with turns that wait; `events` of them. `at_us`: when the last one came."""
ATOMS = Table(
    name="atoms",
    columns=(
        *("id", "n", "seq", "decision", "type", "text", "subject", "slot", "value", "entities", "priority", "scope"),
        *("polarity", "valid_from", "valid_to", "language", "quarantine", "sources", "said_by", "session", "agent"),
        *("project", "time", "time_us", "known_us", "same", "acts", "effects", "more", "removed_by"),
        *("status", "by", "reason", "count", "first_us", "last_us", "until"),
    ),
    key=1,
    ddl="""CREATE TABLE atoms(
  id TEXT PRIMARY KEY, n INTEGER NOT NULL UNIQUE, seq INTEGER NOT NULL, decision TEXT NOT NULL, type TEXT NOT NULL,
  text TEXT NOT NULL, subject TEXT NOT NULL, slot TEXT NOT NULL, value TEXT NOT NULL, entities TEXT NOT NULL,
  priority INTEGER NOT NULL, scope TEXT NOT NULL, polarity INTEGER NOT NULL, valid_from TEXT NOT NULL,
  valid_to TEXT NOT NULL, language TEXT NOT NULL, quarantine TEXT NOT NULL, sources TEXT NOT NULL,
  said_by TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL, project TEXT NOT NULL, time TEXT NOT NULL,
  time_us INTEGER NOT NULL, known_us INTEGER NOT NULL, same TEXT NOT NULL, acts TEXT NOT NULL,
  effects TEXT NOT NULL, more INTEGER NOT NULL, removed_by TEXT NOT NULL, status TEXT NOT NULL, by TEXT NOT NULL,
  reason TEXT NOT NULL, count INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL,
  until TEXT NOT NULL) STRICT;
CREATE INDEX atoms_slot ON atoms(slot, subject, n) WHERE slot <> '' AND status <> 'repeated';
CREATE INDEX atoms_same ON atoms(same, n) WHERE status <> 'repeated';
CREATE INDEX atoms_by ON atoms(by) WHERE by <> '';
CREATE INDEX atoms_decision ON atoms(decision)""",
)
INDEX = Table(
    name="atoms_fts",
    columns=("rowid", "own"),
    key=1,
    ddl="CREATE VIRTUAL TABLE atoms_fts USING fts5(own, content='', contentless_delete=1, "
    "tokenize=\"ascii tokenchars '_./+#@:&-'\")",
)
"""rowid = `n` of the atom; the terms are those of the journal's index."""
UNRECONCILED = Table(
    name="unreconciled",
    columns=("decision", "seq"),
    key=1,
    ddl="CREATE TABLE unreconciled(decision TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID; "
    "CREATE INDEX unreconciled_seq ON unreconciled(seq)",
)
DECISIONS = Table(
    name="decisions",
    columns=(
        *("id", "seq", "kind", "at_us", "inputs", "by", "version", "model", "tokens", "duration_ms"),
        *("error", "atoms", "undone"),
    ),
    key=1,
    ddl="""CREATE TABLE decisions(
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, kind TEXT NOT NULL, at_us INTEGER NOT NULL, inputs INTEGER NOT NULL,
  by TEXT NOT NULL, version TEXT NOT NULL, model TEXT NOT NULL, tokens INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL, error TEXT NOT NULL, atoms TEXT NOT NULL, undone TEXT NOT NULL) STRICT;
CREATE INDEX decisions_seq ON decisions(seq);
CREATE INDEX decisions_at ON decisions(at_us, tokens)""",
)
"""Extractions, reconciliations, corrections and failed attempts, with what they cost."""
TABLES = (TURNS, SESSIONS, WINDOWS, ATOMS, INDEX, UNRECONCILED, DECISIONS)


class TurnRow(Struct, frozen=True):
    """A turn, tool result or stated memory; `atoms` are ids of what came of it, `corrected` that of a correction."""

    id: str
    seq: int
    session: str
    kind: str
    role: str
    name: str
    agent: str
    project: str
    time: str
    time_us: int
    window: int
    outcome: int
    decision: str
    atoms: str
    corrected: str
    text: str


class SessionRow(Struct, frozen=True):
    session: str
    window: int = 0
    turns: int = 0
    last_us: int = 0


class WindowRow(Struct, frozen=True):
    window: int
    session: str
    state: int = OPEN
    turns: int = 0
    events: int = 0
    chars: int = 0
    at_us: int = 0


class DecisionRow(Struct, frozen=True, kw_only=True):
    """`by` is the extractor or the rules; `atoms` the ids made, or touched by a reconciliation."""

    id: str
    seq: int
    kind: str
    at_us: int
    inputs: int
    by: str = ""
    version: str = ""
    model: str = ""
    tokens: int = 0
    duration_ms: int = 0
    error: str = ""
    atoms: str = "[]"
    undone: str = ""


class Tie(Struct, frozen=True, array_like=True):
    """What one atom does to another, as either of them knows it: the verb, the other, the decision, the reason."""

    verb: str
    other: str
    decision: str
    reason: str = ""


class AtomRow(Struct, frozen=True, kw_only=True):
    """An atom. `acts` are ties in which it does something, `effects` those in which something is done to it;
    `more` counts the repetitions beyond those whose ties are kept.

    All from `status` on follows from the ties: active, superseded, repeated (counts for `by`), contradicted,
    quarantined or undone; `count` of statements, the first and the last of them; `until`, when it ceased to hold.
    """

    id: str
    n: int
    seq: int
    decision: str
    type: str
    text: str
    subject: str
    slot: str
    value: str
    entities: str
    priority: int
    scope: str
    polarity: int
    valid_from: str
    valid_to: str
    language: str
    quarantine: str
    sources: str
    said_by: str
    session: str
    agent: str
    project: str
    time: str
    time_us: int
    known_us: int
    same: str
    acts: str = "[]"
    effects: str = "[]"
    more: int = 0
    removed_by: str = ""
    status: str = "active"
    by: str = ""
    reason: str = ""
    count: int = 1
    first_us: int = 0
    last_us: int = 0
    until: str = ""


_OF_TABLE: dict[type[Struct], str] = {
    TurnRow: "turns",
    SessionRow: "sessions",
    WindowRow: "windows",
    DecisionRow: "decisions",
    AtomRow: "atoms",
}
_strings = msgspec.json.Decoder(tuple[str, ...])
_ties = msgspec.json.Decoder(tuple[Tie, ...])


def got(rows: Rows, kind: type[R], key: str | int) -> R | None:
    """The row of this kind with this key."""
    row = rows.get(_OF_TABLE[kind], (key,))
    return made(kind, row) if row is not None else None


def made(kind: type[R], row: tuple[Any, ...]) -> R:
    """The struct of a whole row, in the order of its columns."""
    return kind(**dict(zip(kind.__struct_fields__, row, strict=True)))


def put(one: Struct) -> Put:
    return Put(_OF_TABLE[type(one)], msgspec.structs.astuple(one))


def strings(text: str) -> tuple[str, ...]:
    return _strings.decode(text)


def ties(text: str) -> tuple[Tie, ...]:
    return _ties.decode(text)


def json(value: object) -> str:
    return msgspec.json.encode(value).decode()
