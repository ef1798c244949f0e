"""What a node knows of a service across spaces: lane positions and when each space is due.

`run/<service>.db` is derived. Losing it costs a fold from the start of the log that finds everything applied. All
workers of the service on this node share it; what one of them writes of a lane that another has taken over since, as
after a freeze, is dropped in the same transaction.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from lamina.ids import lane
from lamina.store.driver import Connection

DDL = (
    "CREATE TABLE IF NOT EXISTS lanes(lane INTEGER PRIMARY KEY, epoch TEXT NOT NULL, seq INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS due(space TEXT PRIMARY KEY, at_us INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS due_at ON due(at_us)",
    "CREATE TABLE IF NOT EXISTS owners(lane INTEGER PRIMARY KEY, owner TEXT NOT NULL) STRICT",
)


class Index:
    """Positions are fsynced when written; what is due is written before them, so that a space whose events lie
    behind the position is never forgotten."""

    def __init__(self, path: Path) -> None:
        self._db = Connection(path, readonly=False)
        self._owner = uuid.uuid4().hex

    async def open(self) -> None:
        await self._db.open()

        def make(db: sqlite3.Connection) -> None:
            db.execute("PRAGMA synchronous=FULL")
            for statement in DDL:
                db.execute(statement)

        await self._db.run(make)

    async def positions(self, epoch: str, lanes: Iterable[int]) -> dict[int, int]:
        """The position of each of `lanes` in `epoch`; 0 where it has none."""
        known = dict(
            await self._db.run(
                lambda db: db.execute("SELECT lane, seq FROM lanes WHERE epoch = ?", (epoch,)).fetchall()
            )
        )
        return {n: known.get(n, 0) for n in lanes}

    async def position(self, epoch: str, lanes: Iterable[int]) -> int:
        """The lowest position of `lanes` in `epoch`; 0 when one of them has none."""
        return min((await self.positions(epoch, lanes)).values(), default=0)

    async def own(self, lanes: Iterable[int]) -> None:
        """From now on what this worker writes of these lanes counts, and what those before it write does not."""
        rows = [(n, self._owner) for n in lanes]
        await self._db.transaction(lambda db: db.executemany("INSERT OR REPLACE INTO owners VALUES(?, ?)", rows))

    async def advance(self, epoch: str, seqs: Mapping[int, int]) -> set[int]:
        """Write lane positions, after every view they stand for is durable; the lanes that are another's now."""

        def write(db: sqlite3.Connection) -> set[int]:
            lost = self._lost(db)
            rows = [(n, epoch, seq) for n, seq in seqs.items() if n not in lost]
            db.executemany("INSERT OR REPLACE INTO lanes VALUES(?, ?, ?)", rows)
            return lost & set(seqs)

        return await self._db.transaction(write)

    async def set_due(self, changed: Mapping[str, int | None]) -> set[str]:
        """When each space is due from now on; None: not at all. The spaces whose lane is another's now are left."""
        by_lane = {space: lane(space) for space in changed}

        def write(db: sqlite3.Connection) -> set[str]:
            lost = self._lost(db)
            mine = {space: at for space, at in changed.items() if by_lane[space] not in lost}
            gone = [(space,) for space, at in mine.items() if at is None]
            rows = [(space, at) for space, at in mine.items() if at is not None]
            db.executemany("DELETE FROM due WHERE space = ?", gone)
            db.executemany("INSERT OR REPLACE INTO due VALUES(?, ?)", rows)
            return changed.keys() - mine.keys()

        return await self._db.transaction(write)

    def _lost(self, db: sqlite3.Connection) -> set[int]:
        return {row[0] for row in db.execute("SELECT lane FROM owners WHERE owner <> ?", (self._owner,))}

    async def due(self) -> dict[str, int]:
        """All spaces that are due some time."""
        return await self._db.run(lambda db: dict(db.execute("SELECT space, at_us FROM due")))

    async def close(self) -> None:
        await self._db.close()
