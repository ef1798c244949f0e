"""What of an event is embedded. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina.events import (
    AtomsExtracted,
    Blob,
    MemoryCorrected,
    MemoryForgotten,
    MemoryStated,
    ToolReturned,
    TurnRecorded,
)
from lamina.ids import atom_id
from lamina.runtime import Change, Drop, Key, Put, Recorded, Rows
from lamina.store import Table

VERSION = 3
PASSAGE_CHARS = 300
"""Of a longer text its beginning: a model's time grows with its length, what the text is about is said first."""
_SCRIPTS = (
    ("hangul", re.compile("[\uac00-\ud7a3]")),
    ("kana", re.compile("[\u3040-\u30ff]")),
    ("han", re.compile("[\u4e00-\u9fff]")),
)

TEXTS = Table(
    name="texts",
    columns=("id", "seq", "hash", "script", "text"),
    key=1,
    ddl="CREATE TABLE texts(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash TEXT NOT NULL, script TEXT NOT NULL, "
    "text TEXT NOT NULL) STRICT, WITHOUT ROWID; CREATE INDEX texts_seq ON texts(seq, id, hash, script)",
)
"""What was said: one text an event, under the event's id."""
DERIVED = Table(
    name="derived",
    columns=("id", "seq", "hash", "script", "text", "layer"),
    key=1,
    ddl="CREATE TABLE derived(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, hash TEXT NOT NULL, script TEXT NOT NULL, "
    "text TEXT NOT NULL, layer TEXT NOT NULL) STRICT, WITHOUT ROWID; "
    "CREATE INDEX derived_seq ON derived(seq, id, hash, script, layer)",
)
"""What was made of it: any number an event, each under the id that it has in its own layer (`l1`: an atom)."""
PARENTS = Table(
    name="parents",
    columns=("id", "children"),
    key=1,
    ddl="CREATE TABLE parents(id TEXT PRIMARY KEY, children TEXT NOT NULL) STRICT, WITHOUT ROWID",
)
"""Of an event the texts that are forgotten with it: `<id> <hash>` of each, by lines."""
GONE = Table(
    name="gone",
    columns=("hash",),
    key=1,
    ddl="CREATE TABLE gone(hash TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
)
TABLES = (TEXTS, DERIVED, PARENTS, GONE)


class State(Struct, frozen=True):
    """Nothing is kept between events."""


class Derived(Struct, frozen=True):
    """A text that an event makes of others."""

    id: str
    text: str
    sources: tuple[str, ...] = ()
    layer: str = "l1"


def needs(recorded: Recorded) -> Sequence[Key]:
    """The first of an id is the one that counts; what is forgotten takes its vector along."""
    event, data = recorded.event, recorded.data
    if event is None:
        return ()
    if isinstance(data, MemoryForgotten):
        return tuple((table, (id,)) for id in data.ids for table in ("texts", "derived", "parents"))
    parents = {event.id, *(source for one in _made(event.id, data) for source in one.sources)}
    return (("texts", (event.id,)), *(("parents", (id,)) for id in sorted(parents)))


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    """One text for every turn, tool result and stated or corrected memory, and one for every atom that is kept."""
    event, data = recorded.event, recorded.data
    if event is None or data is None:
        return state, ()
    if isinstance(data, MemoryForgotten):
        return state, [change for id in data.ids for change in _forgotten(id, rows)]
    if rows.get("texts", (event.id,)) is not None or rows.get("parents", (event.id,)) is not None:
        return state, ()
    changes: list[Change] = []
    text = _said(data)
    if text:
        changes.append(Put("texts", (event.id, recorded.seq, text_hash(text), script(text), text)))
    children: dict[str, list[str]] = {}
    for one in _made(event.id, data):
        hash = text_hash(one.text)
        changes.append(Put("derived", (one.id, recorded.seq, hash, script(one.text), one.text, one.layer)))
        for parent in {event.id, *one.sources}:
            children.setdefault(parent, []).append(f"{one.id} {hash}")
    for parent, lines in sorted(children.items()):
        row = rows.get("parents", (parent,))
        changes.append(Put("parents", (parent, "\n".join([*([row[1]] if row else []), *lines]))))
    return state, changes


def passage(who: str, text: str) -> str:
    """What stands for a text before the model: who said it, and its beginning."""
    return f"{who}: {text}"[:PASSAGE_CHARS]


def script(text: str) -> str:
    """The script that tells the language of `text` apart: hangul, kana (Japanese), han (Chinese), or other."""
    for name, letters in _SCRIPTS:
        if letters.search(text):
            return name
    return "other"


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _said(data: object) -> str:
    """What an event says; nothing for a text so large that it is a blob, which keywords find alone."""
    if isinstance(data, TurnRecorded) and not isinstance(data.text, Blob):
        return passage(data.name or data.role, data.text)
    if isinstance(data, MemoryStated | MemoryCorrected) and not isinstance(data.text, Blob):
        return passage("user", data.text)
    if isinstance(data, ToolReturned) and not isinstance(data.result, Blob):
        arguments = msgspec.json.encode(data.arguments).decode()[:PASSAGE_CHARS]
        return passage(data.tool, f"{arguments}\n{data.result}")
    return ""


def _made(event_id: str, data: object) -> Sequence[Derived]:
    """What an event derives: its atoms, but for those in quarantine; of a statement the one atom that it is."""
    if isinstance(data, AtomsExtracted):
        return [
            Derived(atom_id(event_id, n), atom.text[:PASSAGE_CHARS], tuple(span.id for span in atom.sources))
            for n, atom in enumerate(data.atoms)
            if atom.text and not atom.quarantine
        ]
    if isinstance(data, MemoryStated | MemoryCorrected) and _said(data):
        return [Derived(atom_id(event_id, 0), _said(data))]
    return ()


def _forgotten(id: str, rows: Rows) -> Sequence[Change]:
    """What is forgotten with an id: the text it names, and all that was derived of it."""
    changes: list[Change] = []
    for table in ("texts", "derived"):
        row = rows.get(table, (id,))
        if row is not None:
            changes += [Drop(table, (id,)), Put("gone", (row[2],))]
    parent = rows.get("parents", (id,))
    if parent is not None:
        changes.append(Drop("parents", (id,)))
        for line in parent[1].split("\n"):
            child, _, hash = line.partition(" ")
            changes += [Drop("derived", (child,)), Put("gone", (hash,))]
    return changes
