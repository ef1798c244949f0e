"""A view: one SQLite file of one service in one space, written by one connection, read by others.

`views/<name>.db` is a link to the generation in use, `views/<name>.<n>.db`. A rebuild fills the next generation
and moves the link in one rename, so that a reader sees the old one or the new one, never half of either, and no
live database with a write-ahead log is ever renamed (https://sqlite.org/howtocorrupt.html).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from lamina.errors import Busy, Closed, Denied, DiskFull, Unavailable
from lamina.store.driver import Connection, Damaged

T = TypeVar("T")
STEPS_PER_LOOK = 2_000
MOST_SWITCHES = 3

RUNTIME_DDL = """
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead(
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, type TEXT NOT NULL, error TEXT NOT NULL, raw BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS refused(
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, type TEXT NOT NULL, why TEXT NOT NULL,
  tokens INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS decided(
  step TEXT PRIMARY KEY, n INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failed(
  step TEXT PRIMARY KEY, n INTEGER NOT NULL, attempt INTEGER NOT NULL, not_before_us INTEGER NOT NULL,
  error TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS erased(id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""


class Table(Struct, frozen=True):
    """A table of a view. The first `key` columns are its primary key; 0 means rows are only ever added."""

    name: str
    columns: tuple[str, ...]
    key: int
    ddl: str


def generation(link: Path) -> int:
    """The generation that `views/<name>.db` points to; 0 when there is none."""
    try:
        target = link.readlink().name
    except OSError:
        return 0
    number = target.removeprefix(f"{link.stem}.").removesuffix(".db")
    return int(number) if number.isdigit() else 0


def generation_path(link: Path, n: int) -> Path:
    return link.with_name(f"{link.stem}.{n}.db")


def unused_generation(link: Path) -> int:
    """A number above every generation on disk: one that was unlinked may still be open in another process."""
    numbers = [generation(link)]
    for path in link.parent.glob(f"{link.stem}.*.db*"):
        number = path.name.removeprefix(f"{link.stem}.").split(".")[0]
        numbers.append(int(number) if number.isdigit() else 0)
    return max(numbers) + 1


def remove_generation(link: Path, n: int) -> None:
    for path in link.parent.glob(f"{generation_path(link, n).name}*"):
        path.unlink(missing_ok=True)


def identity(path: Path) -> tuple[int, int] | None:
    """Which file `path` leads to now; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def switch(link: Path, n: int) -> None:
    """Let `link` point to generation `n`, atomically, and remove the generations before it."""
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(generation_path(link, n).name)
    temporary.replace(link)
    for old in link.parent.glob(f"{link.stem}.*.db*"):
        number = old.name.removeprefix(f"{link.stem}.").split(".")[0]
        if number.isdigit() and int(number) < n:
            old.unlink(missing_ok=True)


class View:
    """The writing side of a view; owned by the worker that opened it, closed by `close`."""

    def __init__(self, link: Path, tables: tuple[Table, ...], *, n: int) -> None:
        self.link = link
        self.n = n
        self.tables = {table.name: table for table in tables}
        self._db = Connection(generation_path(link, n), readonly=False)
        self._identity: tuple[int, int] | None = None

    @property
    def path(self) -> Path:
        return self._db.path

    async def open(self) -> None:
        """Connect and make the tables. Raises `Damaged` when the file is no database, `Denied`, `DiskFull`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)

        def made(db: sqlite3.Connection) -> bool:
            return db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone() is not None

        def tables(db: sqlite3.Connection) -> None:
            if made(db):
                return
            for ddl in (RUNTIME_DDL, *(table.ddl for table in self.tables.values())):
                for statement in ddl.split(";"):
                    db.execute(statement)

        await self._db.open()
        if not await self._db.run(made):
            await self._db.transaction(tables)
        self._identity = identity(self.path)

    @property
    def linked(self) -> bool:
        """Is this still the file that readers see, and not one that was replaced or deleted under us?"""
        return self._identity is not None and identity(self.link) == self._identity

    async def transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` inside one `BEGIN IMMEDIATE`: all of it or, when it raises, nothing.

        The lock is the fence between two workers of one view: whoever waits for it sees what the other did.
        Cancelling the await does not cut the work in half. `Busy` when the lock is not had in 2 s.
        """
        return await self._db.transaction(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` on the writing connection, outside a transaction: it sees what was committed last."""
        return await self._db.run(work)

    async def checkpoint(self) -> None:
        """Bring the write-ahead log into the file and fsync it; after this a power cut loses nothing of it.

        `Busy` when somebody else reads or writes for so long that not all of it could be brought over.
        """
        busy, written, moved = await self._db.run(lambda db: db.execute("PRAGMA wal_checkpoint(FULL)").fetchone())
        if busy or written != moved:
            raise Busy(f"{self.path.name}: another process reads or writes it; it is made durable later")

    async def close(self) -> None:
        await self._db.close()


class ViewReader:
    """The reading side: opens at first use, follows the link to a new generation, never writes."""

    def __init__(self, link: Path) -> None:
        self.link = link
        self.n = 0
        """The generation that was read last."""
        self._identity: tuple[int, int] | None = None
        self._db: Connection | None = None
        self._closed = False
        self._opening = asyncio.Lock()

    async def read(self, work: Callable[[sqlite3.Connection], T], *, until_s: float | None = None) -> T:
        """`work` in one read transaction; `until_s` (monotonic clock) ends its statements.

        `Unavailable` while there is no view, `Damaged` when it is broken, `Transient` when time ran out, `Closed`
        after `close`. A
        generation that is removed while it is being opened or read fails in many ways; then the new one is read.
        """
        for _ in range(MOST_SWITCHES):
            before = identity(self.link)
            try:
                return await self._read(work, until_s)
            except (Damaged, Denied, DiskFull):
                if identity(self.link) == before:
                    raise
        return await self._read(work, until_s)

    async def _read(self, work: Callable[[sqlite3.Connection], T], until_s: float | None) -> T:
        async with self._opening:
            db = await self._connection()

        def snapshot(raw: sqlite3.Connection) -> T:
            try:
                if until_s is not None:
                    raw.set_progress_handler(lambda: int(time.monotonic() > until_s), STEPS_PER_LOOK)
                raw.execute("BEGIN")
                return work(raw)
            finally:
                raw.set_progress_handler(None, 0)
                if raw.in_transaction:  # some errors end it by themselves, and must not be hidden by another one
                    raw.execute("ROLLBACK")

        return await db.run(snapshot)

    async def _connection(self) -> Connection:
        if self._closed:
            raise Closed(f"the reader of {self.link.stem} was closed")
        found = identity(self.link)
        if self._db is not None and found == self._identity:
            return self._db
        await self._drop()
        n = generation(self.link)
        path = generation_path(self.link, n)
        found = identity(path)
        if not n or found is None:
            raise Unavailable(f"{self.link.stem}: there is no view here yet")
        self.n = n
        db = Connection(path, readonly=True)
        await db.open()
        self._db, self._identity = db, found
        return db

    async def close(self) -> None:
        """For good: a read that is about to open the view would leave it open for ever."""
        self._closed = True
        async with self._opening:
            await self._drop()

    async def _drop(self) -> None:
        if self._db is not None:
            db, self._db = self._db, None
            await db.close()
