"""The rows of the `persona` view, and what turns a row into a struct and back. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lamina.runtime import Put, Rows
from lamina.store import Table

R = TypeVar("R", bound=Struct)

INFERRED, REMOVED, WRITTEN, GONE = 0, 1, 2, 3
"""Whose a line is: that of what was said, one that a person took out, one that a person wrote, one that is kept for
what was shown before alone."""
HIDDEN = (REMOVED, GONE)

ATOMS = Table(
    name="atoms",
    columns=(
        *("id", "type", "text", "scope", "polarity", "subject", "slot", "value", "priority"),
        *("sources", "origins", "line"),
    ),
    key=1,
    ddl="""CREATE TABLE atoms(
  id TEXT PRIMARY KEY, type TEXT NOT NULL, text TEXT NOT NULL, scope TEXT NOT NULL, polarity INTEGER NOT NULL,
  subject TEXT NOT NULL, slot TEXT NOT NULL, value TEXT NOT NULL, priority INTEGER NOT NULL, sources TEXT NOT NULL,
  origins TEXT NOT NULL, line TEXT NOT NULL) STRICT""",
)
"""Atoms that may come to be lines, as they were said. How they stand is known by the view of the atoms alone."""
ORIGINS = Table(
    name="origins",
    columns=("id", "atoms"),
    key=1,
    ddl="CREATE TABLE origins(id TEXT PRIMARY KEY, atoms TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
"""Which atoms came of an event: what was said, or the decision that made them."""
LINES = Table(
    name="lines",
    columns=(
        *("id", "atom", "section", "weight", "first_us", "last_us", "until", "other", "project", "held"),
        *("text", "edit", "edit_us", "replaces", "decision"),
    ),
    key=1,
    ddl="""CREATE TABLE lines(
  id TEXT PRIMARY KEY, atom TEXT NOT NULL, section TEXT NOT NULL, weight INTEGER NOT NULL,
  first_us INTEGER NOT NULL, last_us INTEGER NOT NULL, until TEXT NOT NULL, other TEXT NOT NULL,
  project TEXT NOT NULL, held INTEGER NOT NULL, text TEXT NOT NULL, edit TEXT NOT NULL, edit_us INTEGER NOT NULL,
  replaces TEXT NOT NULL, decision TEXT NOT NULL) STRICT;
CREATE INDEX lines_order ON lines(section, held, weight DESC, last_us DESC);
CREATE INDEX lines_held ON lines(held) WHERE held = 2;
CREATE INDEX lines_last ON lines(last_us) WHERE held = 0;
CREATE INDEX lines_atom ON lines(atom)""",
)
"""Every line that may be shown. What a line says never changes: other words are another line."""
PENDING = Table(
    name="pending",
    columns=("event", "seq", "atoms", "whole"),
    key=1,
    ddl="CREATE TABLE pending(event TEXT PRIMARY KEY, seq INTEGER NOT NULL, atoms TEXT NOT NULL, "
    "whole INTEGER NOT NULL) STRICT; CREATE INDEX pending_seq ON pending(seq)",
)
"""Events after which atoms may stand otherwise; `whole`: any of them."""
REVISIONS = Table(
    name="revisions",
    columns=("n", "seq", "at_us", "event", "kind", "shown", "over", "seal"),
    key=1,
    ddl="""CREATE TABLE revisions(
  n INTEGER PRIMARY KEY, seq INTEGER NOT NULL, at_us INTEGER NOT NULL, event TEXT NOT NULL, kind TEXT NOT NULL,
  shown TEXT NOT NULL, over INTEGER NOT NULL, seal TEXT NOT NULL) STRICT;
CREATE INDEX revisions_seal ON revisions(seal, n)""",
)
"""Every persona there was, as ids of lines: what is forgotten is gone from all of them."""
EDITS = Table(
    name="edits",
    columns=("id", "seq", "at_us", "made", "removed"),
    key=1,
    ddl="CREATE TABLE edits(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, at_us INTEGER NOT NULL, "
    "made TEXT NOT NULL, removed TEXT NOT NULL) STRICT",
)
"""What a person put in and took out, as ids of lines."""
TABLES = (ATOMS, ORIGINS, LINES, PENDING, REVISIONS, EDITS)


class AtomRow(Struct, frozen=True, kw_only=True):
    """`sources` are the events in which it was said, `origins` these and the decision that made it; `line` is the id
    of its line, made of the place where it was said, so that another extraction of it is the same line."""

    id: str
    type: str
    text: str
    scope: str
    polarity: int
    subject: str
    slot: str
    value: str
    priority: int
    sources: str
    origins: str
    line: str


class LineRow(Struct, frozen=True, kw_only=True):
    """`edit` is the event by which a person wrote or removed it, `replaces` the line whose place it took."""

    id: str
    atom: str = ""
    section: str = "identity"
    weight: int = 0
    first_us: int = 0
    last_us: int = 0
    until: str = ""
    other: str = ""
    project: str = ""
    held: int = INFERRED
    text: str = ""
    edit: str = ""
    edit_us: int = 0
    replaces: str = ""
    decision: str = ""


class RevisionRow(Struct, frozen=True, kw_only=True):
    n: int
    seq: int
    at_us: int
    event: str
    kind: str
    shown: str
    over: int
    seal: str


class EditRow(Struct, frozen=True, kw_only=True):
    id: str
    seq: int
    at_us: int
    made: str
    removed: str


_OF_TABLE: dict[type[Struct], str] = {
    AtomRow: "atoms",
    LineRow: "lines",
    RevisionRow: "revisions",
    EditRow: "edits",
}
_strings = msgspec.json.Decoder(tuple[str, ...])
_shown = msgspec.json.Decoder(tuple[tuple[str, str], ...])


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


def places(text: str) -> tuple[tuple[str, str], ...]:
    """(section, line id) of each line of a revision."""
    return _shown.decode(text)


def json(value: object) -> str:
    return msgspec.json.encode(value).decode()
