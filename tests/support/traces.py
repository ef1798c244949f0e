"""Is anything of some words left in a home? Looked for without any part of the product that forgets."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from lamina.bus import Bus
from lamina.home import Home
from lamina.store.driver import connect


async def traces(home: Home, bus: Bus, words: Iterable[str]) -> list[str]:
    """Where one of the words stands: in messages as the bus gives them, in bytes of files (pages of databases, free
    ones too, and their logs), and in the words of full-text indexes, which write none of them out whole."""
    wanted = [word.encode() for word in words]
    found = []
    reader = bus.read(["lamina.>"], after=0, name="traces")
    while messages := await reader.fetch(1_000, 0.1):
        found += [f"message {one.seq}" for one in messages if any(word in one.data for word in wanted)]
        if not reader.pending:
            break
    await reader.close()
    for path in sorted(home.path.rglob("*")):
        if path.is_file() and not path.is_symlink():
            raw = path.read_bytes()
            found += [str(path.relative_to(home.path)) for word in wanted if word in raw][:1]
            if raw.startswith(b"SQLite format 3"):
                known = _indexed(path)
                found += [f"index of {path.name}" for word in wanted if not known.isdisjoint(_terms(word))][:1]
    return found


def _terms(word: bytes) -> set[str]:
    """A Latin word as an index has it; of other scripts, whose indexes hold pairs of letters, nothing is unique."""
    return {word.decode().lower()} if re.fullmatch(rb"[a-z0-9]+", word) else set()


def _indexed(path: Path) -> set[str]:
    found: set[str] = set()
    db: sqlite3.Connection = connect(path, readonly=True)
    try:
        tables = db.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'").fetchall()
        db.execute("PRAGMA query_only=OFF")
        for (table,) in tables:
            db.execute(f"CREATE VIRTUAL TABLE temp.{table}_v USING fts5vocab('main', '{table}', 'row')")
            found |= {row[0] for row in db.execute(f"SELECT term FROM temp.{table}_v")}
    finally:
        db.close()
    return found
