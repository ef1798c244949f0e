"""What a view says, as one digest a table: equal for two views that say the same, however they were made."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from lamina.store.driver import connect, translated

SHADOWS = ("_data", "_idx", "_docsize", "_content", "_config")
"""How an index is cut into segments depends on the batches that filled it, and says nothing."""
META = ("state",)
"""Of what a view knows of itself the state alone: epoch, position and marks of a rebuild say nothing of memory."""
_SPACE = 1 << 256


def digest(view: Path) -> dict[str, str]:
    """Table -> digest of its rows, whatever their order; of a full-text index every word with its row and place.

    `view` is the database or the link to it. Positions and epochs are left out; decisions stand in a view with the
    times of their events, so that a rebuild gives the same. `Damaged` when it is no database.
    """
    path = view.resolve()
    with translated(path):
        db = connect(path, readonly=True)
        try:
            return digest_of(db)
        finally:
            db.close()


def digest_of(db: sqlite3.Connection) -> dict[str, str]:
    """As `digest`, of an open view."""
    tables = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    words = {name for name, sql in tables if "USING fts5" in sql}
    shadows = {f"{name}{end}" for name in words for end in SHADOWS}
    found = {}
    for name, _ in tables:
        if name in words:
            found[name] = _digest_of_words(db, name)
        elif name == "meta":
            marks = ", ".join("?" * len(META))
            rows = db.execute(f"SELECT key, value FROM meta WHERE key IN ({marks})", META)  # noqa: S608 - marks alone
            found[name] = _digest(rows)
        elif name not in shadows and not name.startswith("sqlite_"):
            found[name] = _digest(db.execute(f'SELECT * FROM "{name}"'))  # noqa: S608 - a name of the schema itself
    return found


def _digest_of_words(db: sqlite3.Connection, table: str) -> str:
    """Of every word of an index with the row and place where it stands."""
    readonly = db.execute("PRAGMA query_only").fetchone()[0]
    db.execute("PRAGMA query_only=OFF")  # the table that gives the words is a temporary one
    words = f'temp."{table}_words"'
    db.execute(f"CREATE VIRTUAL TABLE {words} USING fts5vocab('main', '{table}', 'instance')")
    try:
        return _digest(db.execute(f"SELECT * FROM {words}"))  # noqa: S608 - a name of the schema itself
    finally:
        db.execute(f"DROP TABLE {words}")
        db.execute(f"PRAGMA query_only={readonly}")


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    """The sum of the digests of rows, and their number: no order, no memory, and no row can hide another."""
    total = count = 0
    encode = msgspec.msgpack.Encoder().encode
    for row in rows:
        total += int.from_bytes(hashlib.sha256(encode(row)).digest(), "big")
        count += 1
    return f"{count}:{total % _SPACE:064x}"
