"""The vectors of a space by the hash of their text: `cache/embeddings-<identity>.db`.

Beside the views, since it is the one derived thing that is dear to make again. A vector is float16, the rows of
one identity in one file; a text that the model refused has an empty one, so that it is not asked for again.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lamina.config import EmbeddingConfig
from lamina.embedding import Vectors
from lamina.errors import Unavailable
from lamina.store.driver import Connection, Damaged, connect, translated
from lamina.store.files import translated_os

DDL = (
    "CREATE TABLE IF NOT EXISTS vectors(n INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, "
    "vector BLOB NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS complete(one INTEGER PRIMARY KEY, epoch TEXT NOT NULL, seq INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS made_by(one INTEGER PRIMARY KEY, config TEXT NOT NULL) STRICT",
)
_KEYS = 500


def cache_path(space_root: Path, identity: str) -> Path:
    return space_root / "cache" / f"embeddings-{identity}.db"


def removed(path: Path) -> None:
    """Remove a cache with the files that SQLite lays beside it; what cannot be removed now is next time."""
    for name in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))):
        with contextlib.suppress(OSError):
            name.unlink(missing_ok=True)


class EmbedCache:
    """The writing side, of one space and identity."""

    def __init__(self, space_root: Path, identity: str, config: EmbeddingConfig | None = None) -> None:
        self._config = config
        self.path = cache_path(space_root, identity)
        self._db = Connection(self.path, readonly=False)

    async def open(self) -> None:
        """Raises what the store raises: `Damaged`, `Denied`, `DiskFull`; `Permanent` where a file is in the way."""
        with translated_os(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with translated(self.path):
            await self._db

        def tables(db: sqlite3.Connection) -> None:
            if not _has(db, "made_by"):
                db.execute("BEGIN IMMEDIATE")
                for statement in DDL:
                    db.execute(statement)
                if self._config is not None:
                    raw = msgspec.json.encode(self._config).decode()
                    db.execute("INSERT OR IGNORE INTO made_by VALUES(1, ?)", (raw,))
                db.execute("COMMIT")

        await self._db.run(tables)

    async def missing(self, hashes: Sequence[str]) -> set[str]:
        """Those of `hashes` that have no row."""

        def look(db: sqlite3.Connection) -> set[str]:
            return set(hashes) - known(db, hashes)

        return await self._db.run(look)

    async def put(self, hashes: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors, those that hold no number (NaN, infinite) as refused."""
        import numpy as np

        half = np.asarray(vectors, dtype=np.float16)
        sound = [bool(np.isfinite(row).all() and row.any()) for row in half]
        rows = [(hash, row.tobytes() if good else b"") for hash, row, good in zip(hashes, half, sound, strict=True)]
        sql = "INSERT OR IGNORE INTO vectors(hash, vector) VALUES(?, ?)"
        await self._db.run(lambda db: db.executemany(sql, rows))

    async def drop(self, hashes: Iterable[str]) -> None:
        rows = [(hash,) for hash in hashes]
        await self._db.run(lambda db: db.executemany("DELETE FROM vectors WHERE hash = ?", rows))

    async def counted(self) -> int:
        """How many texts have a row."""
        return await self._db.run(lambda db: int(db.execute("SELECT count(*) FROM vectors").fetchone()[0]))

    async def completed(self, epoch: str, seq: int) -> None:
        """Keep that every text up to `seq` has a row."""
        sql = "INSERT OR REPLACE INTO complete VALUES(1, ?, ?)"
        await self._db.run(lambda db: db.execute(sql, (epoch, seq)))

    async def close(self) -> None:
        await self._db.close()


def completed(path: Path, epoch: str) -> int:
    """Up to which seq of an epoch the cache at `path` says that it is complete; 0 when it does not."""
    sql = "SELECT seq FROM complete WHERE epoch = ?"
    rows = _rows(path, "complete", sql, (epoch,))
    return int(rows[0][0]) if rows else 0


def was_complete(path: Path) -> bool:
    """Has every text of the space had its vector here once?"""
    return bool(_rows(path, "complete", "SELECT 1 FROM complete"))


def made_by(path: Path) -> EmbeddingConfig | None:
    """The configuration by which the vectors at `path` were made; None where that is not known."""
    rows = _rows(path, "made_by", "SELECT config FROM made_by")
    try:
        return msgspec.json.decode(rows[0][0], type=EmbeddingConfig) if rows else None
    except msgspec.MsgspecError:
        return None  # of a version that knew other settings


def vectors_after(path: Path, n: int) -> list[tuple[int, str, bytes]]:
    """The rows (n, hash, vector) that came after the n-th, in order; none while there is no cache."""
    return _rows(path, "vectors", "SELECT n, hash, vector FROM vectors WHERE n > ? ORDER BY n", (n,))


def _rows(path: Path, table: str, sql: str, values: tuple[str | int, ...] = ()) -> list[Any]:
    """Raises `Unavailable` for a broken file: the embed loop makes it anew."""
    if not path.exists():
        return []
    try:
        with translated(path):
            db = connect(path, readonly=True)
            try:
                return db.execute(sql, values).fetchall() if _has(db, table) else []
            finally:
                db.close()
    except Damaged as error:
        raise Unavailable(f"the vectors are broken and are made anew ({error})") from error


def _has(db: sqlite3.Connection, table: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone() is not None


def known(db: sqlite3.Connection, hashes: Sequence[str]) -> set[str]:
    """Those of `hashes` that have a row."""
    found: set[str] = set()
    for start in range(0, len(hashes), _KEYS):
        part = hashes[start : start + _KEYS]
        marks = ", ".join("?" * len(part))
        rows = db.execute(f"SELECT hash FROM vectors WHERE hash IN ({marks})", part)  # noqa: S608 - marks alone
        found.update(row[0] for row in rows)
    return found
