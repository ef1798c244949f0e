"""What of a turn is embedded. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina.events import Blob, MemoryForgotten, MemoryStated, ToolReturned, TurnRecorded
from lamina.runtime import Change, Drop, Key, Put, Recorded, Rows
from lamina.store import Table

VERSION = 1
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
    "text TEXT NOT NULL) STRICT, WITHOUT ROWID; CREATE INDEX texts_seq ON texts(seq, hash, script)",
)
GONE = Table(
    name="gone",
    columns=("hash",),
    key=1,
    ddl="CREATE TABLE gone(hash TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
)
TABLES = (TEXTS, GONE)


class State(Struct, frozen=True):
    """Nothing is kept between events."""


def needs(recorded: Recorded) -> Sequence[Key]:
    """The first of an id is the one that counts; what is forgotten takes its vector along."""
    if recorded.event is None:
        return ()
    if isinstance(recorded.data, MemoryForgotten):
        return tuple(("texts", (id,)) for id in recorded.data.ids)
    return (("texts", (recorded.event.id,)),)


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    """One text for every turn, tool result and stated memory."""
    event, data = recorded.event, recorded.data
    if event is None or data is None:
        return state, ()
    if isinstance(data, MemoryForgotten):
        changes: list[Change] = []
        for id in data.ids:
            row = rows.get("texts", (id,))
            if row is not None:
                changes += [Drop("texts", (id,)), Put("gone", (row[2],))]
        return state, changes
    text = _said(data)
    if not text or rows.get("texts", (event.id,)) is not None:
        return state, ()
    return state, (Put("texts", (event.id, recorded.seq, text_hash(text), script(text), text)),)


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
    if isinstance(data, MemoryStated) and not isinstance(data.text, Blob):
        return passage("user", data.text)
    if isinstance(data, ToolReturned) and not isinstance(data.result, Blob):
        arguments = msgspec.json.encode(data.arguments).decode()[:PASSAGE_CHARS]
        return passage(data.tool, f"{arguments}\n{data.result}")
    return ""
