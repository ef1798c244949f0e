"""The SQLite driver: pysqlite3 where its wheel exists, the standard library's sqlite3 elsewhere.

pysqlite3 bundles a SQLite behind the WAL-reset fix (3.51.3, https://sqlite.org/wal.html#walresetbug) and loads
extensions; Python's own build often does neither. Its errors are not sqlite3's, so they are translated here.
"""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import aiosqlite

from lamina.errors import Busy, Closed, Denied, DiskFull, LaminaError, Permanent, Transient

Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")

BUSY_TIMEOUT_MS = 2_000
READ_CACHE_KIB = 8_000
"""Most of what a search of 100,000 turns looks at; SQLite's own 2 MB make it read a tenth longer."""
WAL_PAGES = 4_000
"""Pages in a write-ahead log before a commit brings them over: a larger one writes a page that changes often once."""
WAL_RESET_FIXED = (3, 51, 3)


def _load() -> ModuleType:
    try:
        return importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        return sqlite3


driver = _load()
SQLITE_VERSION: tuple[int, ...] = tuple(int(part) for part in driver.sqlite_version.split("."))


class Damaged(Permanent):
    """The database file is not readable as one; the view is rebuilt from the log."""


_BY_CODE: dict[int, type[LaminaError]] = {
    5: Busy,  # SQLITE_BUSY: another process holds the view
    6: Busy,  # SQLITE_LOCKED
    8: Denied,  # SQLITE_READONLY
    9: Transient,  # SQLITE_INTERRUPT
    10: DiskFull,  # SQLITE_IOERR: what a full tmpfs or a dying disk gives
    11: Damaged,  # SQLITE_CORRUPT
    13: DiskFull,  # SQLITE_FULL
    14: Denied,  # SQLITE_CANTOPEN
    23: Denied,  # SQLITE_AUTH
    26: Damaged,  # SQLITE_NOTADB
}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn driver errors about the database at `path` into `lamina.errors`, keeping the cause."""
    try:
        yield
    except driver.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        kind = _BY_CODE.get(code & 0xFF) if code is not None else _by_message(str(error))
        if kind is None and isinstance(error, driver.ProgrammingError):
            kind = Closed if "closed" in str(error).lower() else None
        raise (kind or Permanent)(f"{path.name}: {error}") from error


def _by_message(message: str) -> type[LaminaError] | None:
    for part, kind in (
        ("locked", Busy),
        ("disk is full", DiskFull),
        ("disk I/O", DiskFull),
        ("malformed", Damaged),
        ("not a database", Damaged),
        ("unable to open", Denied),
        ("readonly", Denied),
    ):
        if part in message:
            return kind
    return None


class Connection(aiosqlite.Connection):
    """An aiosqlite connection whose unit of work is a whole function on its thread.

    A statement per await would leave a transaction open when the await is cancelled, and would mix the
    transactions of two tasks; a function that is cancelled runs to its own commit or rollback.
    """

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path = path
        super().__init__(lambda: connect(path, readonly=readonly), 64)

    async def open(self) -> None:
        """Connect; when that fails no thread is left behind. Errors are translated."""
        try:
            with translated(self.path):
                await self
        except BaseException:
            await asyncio.to_thread(self._thread.join)
            raise

    async def transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work` inside one `BEGIN IMMEDIATE`: all of it or, when it raises, nothing."""

        def whole(db: sqlite3.Connection) -> T:
            db.execute("BEGIN IMMEDIATE")
            try:
                result = work(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            return result

        return await self.run(whole)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """`work(connection)` on the connection's thread, errors translated."""
        if self._connection is None:
            raise Closed(f"{self.path.name} is closed")
        with translated(self.path):
            result: T = await self._execute(work, self._connection)  # type: ignore[no-untyped-call]
        return result


def connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """A connection in autocommit mode (transactions are written out), WAL, tuned for a view."""
    uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}"
    db: sqlite3.Connection = driver.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        db.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        db.execute("PRAGMA temp_store=MEMORY")
        if readonly:
            db.execute("PRAGMA query_only=ON")
            db.execute(f"PRAGMA cache_size=-{READ_CACHE_KIB}")
        else:
            _to_wal(db)
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
    except driver.Error:
        db.close()
        raise
    return db


def _to_wal(db: sqlite3.Connection) -> None:
    """Two that turn a new file to WAL at once: SQLite refuses one of them without waiting, to avoid a deadlock."""
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except driver.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.01)
        else:
            return
