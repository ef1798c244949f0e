"""What a node knows of a service across spaces: lane positions and when each space is due.

`run/<service>.db` is derived. Losing it costs a fold from the start of the log that finds everything applied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from lamina.store.driver import Connection

DDL = (
    "CREATE TABLE IF NOT EXISTS lanes(lane INTEGER PRIMARY KEY, epoch TEXT NOT NULL, seq INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS due(space TEXT PRIMARY KEY, at_us INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS due_at ON due(at_us)",
)


class Index:
    """Positions are fsynced when written; what is due is written before them, so that a space whose events lie
    behind the position is never forgotten."""

    def __init__(self, path: Path) -> None:
        self._db = Connection(path, readonly=False)

    async def open(self) -> None:
        await self._db.open()

        def make(db: sqlite3.Connection) -> None:
            db.execute("PRAGMA synchronous=FULL")
            for statement in DDL:
                db.execute(statement)

        await self._db.run(make)

    async def position(self, epoch: str, lanes: Iterable[int]) -> int:
        """The lowest position of `lanes` in `epoch`; 0 when one of them has none."""

        def lowest(db: sqlite3.Connection) -> int:
            known = dict(db.execute("SELECT lane, seq FROM lanes WHERE epoch = ?", (epoch,)))
            return min((known.get(lane, 0) for lane in lanes), default=0)

        return await self._db.run(lowest)

    async def advance(self, epoch: str, seqs: Mapping[int, int]) -> None:
        """Write lane positions, after every view they stand for is durable."""
        rows = [(lane, epoch, seq) for lane, seq in seqs.items()]
        await self._db.transaction(lambda db: db.executemany("INSERT OR REPLACE INTO lanes VALUES(?, ?, ?)", rows))

    async def set_due(self, changed: Mapping[str, int | None]) -> None:
        """When each space is due from now on; None: not at all."""
        gone = [(space,) for space, at in changed.items() if at is None]
        rows = [(space, at) for space, at in changed.items() if at is not None]

        def write(db: sqlite3.Connection) -> None:
            db.executemany("DELETE FROM due WHERE space = ?", gone)
            db.executemany("INSERT OR REPLACE INTO due VALUES(?, ?)", rows)

        await self._db.transaction(write)

    async def due(self) -> dict[str, int]:
        """All spaces that are due some time."""
        return await self._db.run(lambda db: dict(db.execute("SELECT space, at_us FROM due")))

    async def close(self) -> None:
        await self._db.close()
