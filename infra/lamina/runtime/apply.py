"""One batch into one view: fence, fold, files, rows and position in a single transaction.

Runs as one function on the view's thread. Whatever two workers, crashes and repeats do, the order is: take the
lock, read the position, skip what is applied, fold, write files, write rows and position, commit.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from lamina import events
from lamina.errors import Invalid, LaminaError, Permanent
from lamina.events import DeadDropped, DeadRetried, MemoryForgotten, StepFailed
from lamina.runtime.files import SpaceFiles
from lamina.runtime.spec import (
    Add,
    Append,
    Change,
    Drop,
    DropFile,
    Key,
    Put,
    Recorded,
    Service,
    WriteFile,
    dead_id,
)
from lamina.store.driver import Row, driver
from lamina.store.view import Table
from lamina.times import micros, parse

S = TypeVar("S", bound=Struct)
MAX_ERROR_CHARS = 500
MAX_N = 2**53
ERASED_SEQ = "erased_seq"
BACKOFF_S = (1.0, 5.0, 30.0, 120.0, 600.0)


class Unwritable(Permanent):
    """A row does not fit its table, or holds a value that SQLite cannot: the event is parked."""


class Cursor(Struct, Generic[S]):
    """What a view holds beside its rows: the state after the event at `seq`."""

    seq: int
    state: S


class Overlay:
    """Rows read once, changed in memory, written at the end: what `fold` sees and what the batch leaves."""

    def __init__(self, db: sqlite3.Connection, tables: Mapping[str, Table]) -> None:
        self._db = db
        self._tables = tables
        self._known: dict[str, dict[Row, Row | None]] = {name: {} for name in tables}
        self._dirty: dict[str, dict[Row, Row | None]] = {}
        self._added: dict[str, list[Row]] = {}

    def load(self, table: str, key: Row) -> None:
        if key not in self._known[table]:
            t = self._tables[table]
            where = " AND ".join(f"{column} = ?" for column in t.columns[: t.key])
            sql = f"SELECT {', '.join(t.columns)} FROM {table} WHERE {where}"  # noqa: S608 - names of our own tables
            self._known[table][key] = self._db.execute(sql, key).fetchone()

    def load_all(self, table: str, keys: Collection[Row]) -> None:
        """Load many rows at once, as a statement for each costs much more. What does not fit is left to `load`."""
        t, known = self._tables[table], self._known[table]
        columns = ", ".join(t.columns[: t.key])
        left = list(keys)
        while left:
            size = next((size for size in _LOADED_AT_ONCE if size >= len(left)), _LOADED_AT_ONCE[-1])
            part, left = left[:size], left[size:]
            values = ", ".join([f"({', '.join('?' * t.key)})"] * size)
            sql = f"SELECT {', '.join(t.columns)} FROM {table} WHERE ({columns}) IN (VALUES {values})"  # noqa: S608
            padded = part + [part[-1]] * (size - len(part))  # few sizes, so that few statements are prepared
            try:
                rows = self._db.execute(sql, [one for key in padded for one in key]).fetchall()
            except (driver.DataError, driver.InterfaceError, driver.ProgrammingError, *_BINDING_ERRORS):
                continue
            found = {row[: t.key]: row for row in rows}
            if found.keys() <= set(part):  # SQLite may take a key for another type's, as Python does not
                known.update((key, found.get(key)) for key in part)

    def get(self, table: str, key: Row) -> Row | None:
        self.load(table, key)
        return self._known[table][key]

    def apply(self, change: Put | Add | Drop) -> None:
        if isinstance(change, Add):
            self._added.setdefault(change.table, []).append(change.row)
            return
        table = change.table
        row = change.row if isinstance(change, Put) else None
        key = change.row[: self._tables[table].key] if isinstance(change, Put) else change.key
        self._known[table][key] = row
        if table not in self._dirty:
            self._dirty[table] = {}
        self._dirty[table][key] = row

    def write(self) -> None:
        for name, rows in self._dirty.items():
            t = self._tables[name]
            gone = [key for key, row in rows.items() if row is None]
            kept = [row for row in rows.values() if row is not None]
            if gone:
                where = " AND ".join(f"{column} = ?" for column in t.columns[: t.key])
                self._db.executemany(f"DELETE FROM {name} WHERE {where}", gone)  # noqa: S608 - own names
            self._insert(t, "INSERT OR REPLACE", kept)
        for name, added in self._added.items():
            self._insert(self._tables[name], "INSERT", added)

    def _insert(self, t: Table, verb: str, rows: Sequence[Row]) -> None:
        if rows:
            marks = ", ".join("?" * len(t.columns))
            self._db.executemany(f"{verb} INTO {t.name}({', '.join(t.columns)}) VALUES({marks})", rows)


class Batch(Generic[S]):
    """Folds batches of one service into one view; keeps the state between batches while nobody else writes."""

    def __init__(self, service: Service[S], tables: Mapping[str, Table], files: SpaceFiles) -> None:
        self._service = service
        self._tables = tables
        self._files = files
        self._cursor: Cursor[S] | None = None
        self.erased_seq = 0
        """The last tombstone that was seen here."""

    def read(self, db: sqlite3.Connection) -> Cursor[S]:
        """Position and state as committed."""
        seq = read_meta(db, "applied_seq", 0)
        if self._cursor is None or self._cursor.seq != seq:
            raw = read_meta(db, "state", None)
            state = self._service.state() if raw is None else msgspec.json.decode(raw, type=self._service.state)
            self._cursor = Cursor(seq, state)
            self.erased_seq = erased_seq(db)
        return self._cursor

    def apply(self, db: sqlite3.Connection, batch: Sequence[Recorded]) -> Cursor[S]:
        """Fold what is new in `batch`, inside the caller's transaction. Idempotent.

        `Unwritable` when a row does not fit its table; what `SpaceFiles.apply` raises.
        """
        before = self.read(db)
        new = [recorded for recorded in batch if recorded.seq > before.seq]
        if not new:
            return before
        self._cursor = None  # until the commit is known to have happened, nothing is remembered
        overlay = Overlay(db, self._tables)
        needed = self._load(overlay, new)
        state = before.state
        files: list[Append | WriteFile | DropFile] = []
        erased = Erased(db)
        for recorded, keys in zip(new, needed, strict=True):
            if recorded.id in erased:
                continue
            if recorded.event is None and not self._service.malformed:
                _park(db, recorded, recorded.error)
                continue
            decision = None
            try:
                decision = self._decision(recorded)
                if decision is not None and decision.n <= _last_n(db, decision.step):
                    _refuse(db, recorded, decision, f"decision {decision.n} came second")
                    continue
                if decision is not None and any(id in erased for id in decision.inputs):
                    _refuse(db, recorded, decision, "made over what was erased meanwhile")
                    continue
                for table, key in self._service.needs(recorded) if keys is None else keys:
                    overlay.load(table, key)
                folded, changes = self._service.fold(state, recorded, overlay)
                if decision is not None:
                    self._number(db, recorded, decision)
            except CODE_ERRORS as error:
                _park(db, recorded, f"{type(error).__name__}: {error}")
                if decision is not None:
                    self._count_unfoldable(db, recorded, decision, error)
                continue
            _settle(db, self._service, recorded, taken=bool(changes) or folded != state)
            if isinstance(recorded.data, MemoryForgotten):
                erased.add(self._service, recorded.seq, recorded.data)
                self.erased_seq = recorded.seq
            state = folded
            if recorded.error:
                _park(db, recorded, recorded.error)
            _sort(changes, overlay, files)
        self._write(db, overlay, files)
        write_meta(db, "applied_seq", new[-1].seq)
        write_meta(db, "state", msgspec.json.encode(state))
        return Cursor(new[-1].seq, state)

    def _load(self, overlay: Overlay, new: Sequence[Recorded]) -> list[Sequence[Key] | None]:
        """Load what all of `new` need; the keys of each, None where they could not be told (and are asked again)."""
        needed: list[Sequence[Key] | None] = []
        by_table: dict[str, dict[Row, None]] = {}
        for recorded in new:
            keys: Sequence[Key] | None = None
            if recorded.event is not None or self._service.malformed:
                with contextlib.suppress(*CODE_ERRORS):
                    keys = tuple(self._service.needs(recorded))
                    for table, key in keys:
                        by_table.setdefault(table, {})[key] = None
            needed.append(keys)
        for table, wanted in by_table.items():
            if table in self._tables:
                overlay.load_all(table, wanted)
        return needed

    def park(self, db: sqlite3.Connection, recorded: Recorded, error: str) -> Cursor[S]:
        """Pass over an event whose effect cannot be written, inside the caller's transaction."""
        before = self.read(db)
        if recorded.seq <= before.seq:
            return before
        _park(db, recorded, error)
        write_meta(db, "applied_seq", recorded.seq)
        return Cursor(recorded.seq, before.state)

    def committed(self, cursor: Cursor[S]) -> None:
        """Tell that the transaction that gave `cursor` was committed."""
        self._cursor = cursor

    def _write(
        self, db: sqlite3.Connection, overlay: Overlay, files: Sequence[Append | WriteFile | DropFile]
    ) -> None:
        """Files first: after a crash they may be ahead of the view, never behind it."""
        lines = [change.seq for change in files if isinstance(change, Append)]
        self._files.apply(files, held=read_meta(db, "ledger_seq", 0))
        try:
            overlay.write()
        except (driver.IntegrityError, driver.DataError, driver.InterfaceError, *_BINDING_ERRORS) as error:
            raise Unwritable(f"{type(error).__name__}: {error}") from error
        if lines:
            write_meta(db, "ledger_seq", lines[-1])

    def _decision(self, recorded: Recorded) -> events.Decision | None:
        """Step and number of a decision of this service's; `Invalid` for a number that cannot be one."""
        event = recorded.event
        if event is None or (event.type not in self._service.decisions and event.type != "step.failed"):
            return None
        decision = events.read_decision(event)
        if decision is None:
            return None  # fold will find it unreadable and park it
        if event.type == "step.failed" and not (
            _own_step(self._service, decision.step) and isinstance(recorded.data, StepFailed)
        ):
            return None
        if not 0 < decision.n < MAX_N:
            raise Invalid(f"{decision.n} is no number of a decision")
        return decision

    def _number(self, db: sqlite3.Connection, recorded: Recorded, decision: events.Decision) -> None:
        """Take note of a decision that was folded: its number is taken. A failure that is not the last leaves it."""
        failure = recorded.data if isinstance(recorded.data, StepFailed) else None
        if failure is not None and not failure.dead:
            at = micros(parse(failure.not_before)) if failure.not_before else 0
            _write_failed(db, failure.step, failure.n, failure.attempt, at, failure.error)
            return
        db.execute("INSERT OR REPLACE INTO decided VALUES(?, ?, ?)", (decision.step, decision.n, recorded.seq))
        db.execute("DELETE FROM failed WHERE step = ?", (decision.step,))
        if failure is not None:
            _park(db, recorded, failure.error)

    def _count_unfoldable(
        self, db: sqlite3.Connection, recorded: Recorded, decision: events.Decision, error: Exception
    ) -> None:
        """A decision that its own fold cannot take is a failed attempt, or it would be made anew for ever."""
        row = db.execute("SELECT attempt FROM failed WHERE step = ?", (decision.step,)).fetchone()
        attempt = (row[0] if row else 0) + 1
        at = recorded.at_us + int(backoff_s(attempt) * 1e6)
        db.execute("INSERT OR REPLACE INTO decided VALUES(?, ?, ?)", (decision.step, decision.n, recorded.seq))
        _write_failed(db, decision.step, decision.n + 1, attempt, at, f"{type(error).__name__}: {error}")


# What a service's code may raise on an event it cannot take: its own typed errors and those of reading wrong data.
CODE_ERRORS = (
    *(LaminaError, msgspec.MsgspecError, ValueError, TypeError, LookupError, ArithmeticError),
    *(AttributeError, AssertionError, RuntimeError),
)
# What the driver raises on a value that SQLite cannot hold.
_BINDING_ERRORS = (OverflowError, UnicodeEncodeError)
_FILES = (Append, WriteFile, DropFile)
_LOADED_AT_ONCE = (1, 8, 64, 512)


def backoff_s(attempt: int) -> float:
    """How long to wait after the `attempt`-th failure, before jitter."""
    return BACKOFF_S[min(max(attempt, 1), len(BACKOFF_S)) - 1]


def _own_step(service: Service[Any], step: str) -> bool:
    return step.split(".")[0] == service.name


def _tokens(event: events.Event) -> int:
    try:
        return max(0, min(msgspec.json.decode(event.data, type=_Tokens).tokens, MAX_N))
    except msgspec.MsgspecError:
        return 0


class _Tokens(Struct):
    tokens: int = 0


def _last_n(db: sqlite3.Connection, step: str) -> int:
    row = db.execute("SELECT n FROM decided WHERE step = ?", (step,)).fetchone()
    return row[0] if row else 0


class Erased:
    """The ids that were erased on request, as a view knows them: they stay dead, whoever publishes them again. A
    decision that was erased has had its number, so that none is ever made under its id again."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._any = db.execute("SELECT 1 FROM erased LIMIT 1").fetchone() is not None

    def __contains__(self, id: str) -> bool:
        return self._any and self._db.execute("SELECT 1 FROM erased WHERE id = ?", (id,)).fetchone() is not None

    def add(self, service: Service[Any], seq: int, data: MemoryForgotten) -> None:
        write_meta(self._db, ERASED_SEQ, seq)
        self._db.executemany("INSERT OR IGNORE INTO erased VALUES(?)", [(id,) for id in data.ids])
        self._any = True
        for step, n in data.numbers.items():
            if _own_step(service, step) and _last_n(self._db, step) < n < MAX_N:
                self._db.execute("INSERT OR REPLACE INTO decided VALUES(?, ?, 0)", (step, n))


def _refuse(db: sqlite3.Connection, recorded: Recorded, decision: events.Decision, why: str) -> None:
    """The rule that makes the first decision in the log win: a late rival changes nothing, and is counted."""
    event = recorded.event
    assert event is not None  # noqa: S101 - there is no decision without an event
    db.execute(
        "INSERT OR REPLACE INTO refused VALUES(?, ?, ?, ?, ?)",
        (recorded.seq, event.id, event.type, why, _tokens(event)),
    )


def _write_failed(db: sqlite3.Connection, step: str, n: int, attempt: int, at_us: int, error: str) -> None:
    text = error[:MAX_ERROR_CHARS]
    db.execute("INSERT OR REPLACE INTO failed VALUES(?, ?, ?, ?, ?)", (step, n, attempt, at_us, text))


def _settle(db: sqlite3.Connection, service: Service[Any], recorded: Recorded, *, taken: bool) -> None:
    """Park no more what a person dropped, and no failure that the fold took back to be tried again."""
    data = recorded.data
    if not isinstance(data, DeadDropped | DeadRetried) or data.service != service.name:
        return
    if isinstance(data, DeadDropped):
        rows = db.execute("SELECT seq, id, raw FROM dead").fetchall()
        gone = [(seq,) for seq, id, raw in rows if dead_id(id, raw) in data.ids]
        db.executemany("DELETE FROM dead WHERE seq = ?", gone)
    elif taken:
        db.execute("DELETE FROM dead WHERE id = ?", (data.target,))


def _sort(changes: Sequence[Change], overlay: Overlay, files: list[Append | WriteFile | DropFile]) -> None:
    for change in changes:
        if isinstance(change, _FILES):
            files.append(change)
        else:
            overlay.apply(change)


def _park(db: sqlite3.Connection, recorded: Recorded, error: str) -> None:
    event = recorded.event
    db.execute(
        "INSERT OR REPLACE INTO dead VALUES(?, ?, ?, ?, ?)",
        (
            recorded.seq,
            event.id if event else "",
            event.type if event else "",
            error.encode("utf-8", "replace").decode()[:MAX_ERROR_CHARS],
            recorded.raw,
        ),
    )


def read_meta(db: sqlite3.Connection, key: str, default: Any) -> Any:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else default


def erased_seq(db: sqlite3.Connection) -> int:
    """The position of the last tombstone that a view has folded; 0 for none."""
    return int(read_meta(db, ERASED_SEQ, 0))


def write_meta(db: sqlite3.Connection, key: str, value: Any) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))
