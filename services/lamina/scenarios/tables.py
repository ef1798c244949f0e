"""The rows of the `scenarios` view, and what turns a row into a struct and back. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from lamina.runtime import Put, Rows
from lamina.store import Table

R = TypeVar("R", bound=Struct)

NEW, ARRANGED, LEFT_OUT = 0, 1, 2
"""States of an atom: no decision has looked at it, it has its episode, it has none (undone, quarantined, gone)."""

OUT = ("missing", "undone", "quarantined")
"""Standings of atoms that belong to no scenario."""

FORGOTTEN = "memory.forgotten"
"""The kind of a pending event after which episodes may go on from one that is no more."""

TURNS = Table(
    name="turns",
    columns=("id", "session", "project", "time", "time_us"),
    key=1,
    ddl="CREATE TABLE turns(id TEXT PRIMARY KEY, session TEXT NOT NULL, project TEXT NOT NULL, time TEXT NOT NULL, "
    "time_us INTEGER NOT NULL) STRICT, WITHOUT ROWID",
)
ENDED = Table(
    name="ended",
    columns=("session",),
    key=1,
    ddl="CREATE TABLE ended(session TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
)
MADE = Table(
    name="made",
    columns=("source", "atoms"),
    key=1,
    ddl="CREATE TABLE made(source TEXT PRIMARY KEY, atoms TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
"""What came of an event: the atoms of which it is a source, or that it decided."""
ATOMS = Table(
    name="atoms",
    columns=(
        *("id", "n", "decision", "type", "text", "subject", "priority", "session", "project", "time", "time_us"),
        *("sources", "state", "status", "by", "until", "count", "episode"),
    ),
    key=1,
    ddl="""CREATE TABLE atoms(
  id TEXT PRIMARY KEY, n INTEGER NOT NULL, decision TEXT NOT NULL, type TEXT NOT NULL, text TEXT NOT NULL,
  subject TEXT NOT NULL, priority INTEGER NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL,
  time TEXT NOT NULL, time_us INTEGER NOT NULL, sources TEXT NOT NULL, state INTEGER NOT NULL,
  status TEXT NOT NULL, by TEXT NOT NULL, until TEXT NOT NULL, count INTEGER NOT NULL,
  episode TEXT NOT NULL) STRICT;
CREATE INDEX atoms_new ON atoms(n) WHERE state = 0;
CREATE INDEX atoms_place ON atoms(session, project, time_us) WHERE episode <> '';
CREATE INDEX atoms_by ON atoms(by) WHERE by <> ''""",
)
HOLDS = Table(
    name="holds",
    columns=("word", "first_us", "tie", "episode"),
    key=4,
    ddl="CREATE TABLE holds(word TEXT NOT NULL, first_us INTEGER NOT NULL, tie TEXT NOT NULL, episode TEXT NOT NULL, "
    "PRIMARY KEY(word, first_us, tie, episode)) STRICT, WITHOUT ROWID",
)
"""The episodes in which a telling word stands, in the order in which they begin."""
EPISODES = Table(
    name="episodes",
    columns=(
        *("id", "atoms", "session", "project", "first_us", "last_us", "tie", "words", "held"),
        *("parent", "score", "scenario", "digest"),
    ),
    key=1,
    ddl="""CREATE TABLE episodes(
  id TEXT PRIMARY KEY, atoms TEXT NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL, first_us INTEGER NOT NULL,
  last_us INTEGER NOT NULL, tie TEXT NOT NULL, words INTEGER NOT NULL, held TEXT NOT NULL,
  parent TEXT NOT NULL, score REAL NOT NULL, scenario TEXT NOT NULL, digest TEXT NOT NULL) STRICT;
CREATE INDEX episodes_parent ON episodes(parent) WHERE parent <> '';
CREATE INDEX episodes_scenario ON episodes(scenario);
CREATE INDEX episodes_project ON episodes(project, first_us, tie) WHERE project <> ''""",
)
SCENARIOS = Table(
    name="scenarios",
    columns=(
        *(
            "id",
            "slug",
            "title",
            "summary",
            "project",
            "status",
            "merged",
            "episodes",
            "atoms",
            "mentions",
            "sessions",
        ),
        *("first_us", "last_us", "seq", "edits", "parts", "steps", "description"),
    ),
    key=1,
    ddl="""CREATE TABLE scenarios(
  id TEXT PRIMARY KEY, slug TEXT NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL, project TEXT NOT NULL,
  status TEXT NOT NULL, merged TEXT NOT NULL, episodes TEXT NOT NULL, atoms INTEGER NOT NULL,
  mentions INTEGER NOT NULL, sessions INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL,
  seq INTEGER NOT NULL, edits TEXT NOT NULL, parts TEXT NOT NULL, steps INTEGER NOT NULL,
  description TEXT NOT NULL) STRICT;
CREATE INDEX scenarios_last ON scenarios(last_us) WHERE status <> 'merged';
CREATE INDEX scenarios_slug ON scenarios(slug)""",
)
SLUGS = Table(
    name="slugs",
    columns=("slug", "scenario"),
    key=1,
    ddl="CREATE TABLE slugs(slug TEXT PRIMARY KEY, scenario TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
FILES = Table(
    name="files",
    columns=("path", "text"),
    key=1,
    ddl="CREATE TABLE files(path TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
"""The rendered files: what a person's edit is told by, and what was said in one at an earlier moment."""
EDITED = Table(
    name="edited",
    columns=("event", "scenario"),
    key=1,
    ddl="CREATE TABLE edited(event TEXT PRIMARY KEY, scenario TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
"""By which event a person changed the file of which scenario."""
PENDING = Table(
    name="pending",
    columns=("id", "seq", "kind", "episodes"),
    key=1,
    ddl="CREATE TABLE pending(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, kind TEXT NOT NULL, "
    "episodes TEXT NOT NULL) STRICT, WITHOUT ROWID; CREATE INDEX pending_seq ON pending(seq)",
)
"""Events that may have made or changed atoms, and that no decision has looked at; `episodes` lost atoms by them."""
DECISIONS = Table(
    name="decisions",
    columns=("id", "seq", "kind", "at_us", "inputs", "by", "model", "tokens", "error", "undone", "operations"),
    key=1,
    ddl="""CREATE TABLE decisions(
  id TEXT PRIMARY KEY, seq INTEGER NOT NULL, kind TEXT NOT NULL, at_us INTEGER NOT NULL, inputs INTEGER NOT NULL,
  by TEXT NOT NULL, model TEXT NOT NULL, tokens INTEGER NOT NULL, error TEXT NOT NULL, undone TEXT NOT NULL,
  operations TEXT NOT NULL) STRICT""",
)
TABLES = (TURNS, ENDED, MADE, ATOMS, HOLDS, EPISODES, SCENARIOS, SLUGS, FILES, EDITED, PENDING, DECISIONS)


class TurnRow(Struct, frozen=True):
    """What a source says of the atoms made of it."""

    id: str
    session: str
    project: str
    time: str
    time_us: int


class AtomRow(Struct, frozen=True, kw_only=True):
    """An atom, as the events that made it say; from `state` on, as decisions saw it in the view of atoms."""

    id: str
    n: int
    decision: str
    type: str
    text: str
    subject: str
    priority: int
    session: str
    project: str
    time: str
    time_us: int
    sources: str
    state: int = NEW
    status: str = "active"
    by: str = ""
    until: str = ""
    count: int = 1
    episode: str = ""


class EpisodeRow(Struct, frozen=True, kw_only=True):
    """Atoms of one session that lie together in time, in their order. `held` are the telling words, `words` is their
    number, `digest` is what its scenario is told of it."""

    id: str
    atoms: str
    session: str
    project: str
    first_us: int
    last_us: int
    tie: str
    words: int
    held: str = "[]"
    parent: str = ""
    score: float = 0.0
    scenario: str = ""
    digest: str = ""


class ScenarioRow(Struct, frozen=True, kw_only=True):
    """Episodes that belong together. `status` is open, closed (by hand), or merged into another, `merged`.

    `mentions` counts statements with their repetitions; `edits` is what a person changed in its files, `parts` are
    the months that have a file of their own; `steps` is how many its skill has, 0 where there is none, and
    `description` says when to use it.
    """

    id: str
    slug: str
    title: str = ""
    summary: str = ""
    project: str = ""
    status: str = "open"
    merged: str = ""
    episodes: str = "[]"
    atoms: int = 0
    mentions: int = 0
    sessions: int = 0
    first_us: int = 0
    last_us: int = 0
    seq: int = 0
    edits: str = "{}"
    parts: str = "[]"
    steps: int = 0
    description: str = ""


class PendingRow(Struct, frozen=True):
    id: str
    seq: int
    kind: str
    episodes: str = "[]"


class DecisionRow(Struct, frozen=True, kw_only=True):
    id: str
    seq: int
    kind: str
    at_us: int
    inputs: int
    by: str = ""
    model: str = ""
    tokens: int = 0
    error: str = ""
    undone: str = ""
    operations: str = "[]"


_OF_TABLE: dict[type[Struct], str] = {
    TurnRow: "turns",
    AtomRow: "atoms",
    EpisodeRow: "episodes",
    ScenarioRow: "scenarios",
    PendingRow: "pending",
    DecisionRow: "decisions",
}
_strings = msgspec.json.Decoder(tuple[str, ...])


def got(rows: Rows, kind: type[R], key: str) -> R | None:
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


def json(value: object) -> str:
    return msgspec.json.encode(value).decode()
