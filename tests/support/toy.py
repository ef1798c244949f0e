"""A small service that shows all that a service may do, a log to feed it with, and a dump of what it left.

It keeps every turn as a ledger line and a row, counts words per session in its state, renders a file, and decides
a digest over each pair of turns.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from lamina import events, ids, times
from lamina.bus import Bus
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Invalid
from lamina.events import DeadRetried, StepFailed, TurnRecorded
from lamina.home import Home
from lamina.runtime import Add, Append, Change, Drop, Due, Key, Put, Recorded, Rows, Service, Wanted, WriteFile
from lamina.runtime.spec import Act, Made
from lamina.runtime.worker import Worker
from lamina.store import Table, View
from lamina.store.driver import connect

POISON = "poison"
STEP = "toy.digest"
PAIR = 2
WAIT_S = 10.0

WORDS = Table(
    name="words",
    columns=("word", "count", "first"),
    key=1,
    ddl="CREATE TABLE words(word TEXT PRIMARY KEY, count INTEGER NOT NULL, first TEXT NOT NULL) STRICT",
)
SAID = Table(
    name="said",
    columns=("seq", "text"),
    key=0,
    ddl="CREATE TABLE said(seq INTEGER NOT NULL, text TEXT NOT NULL CHECK(text <> 'unfit')) STRICT",
)
DIGESTS = Table(
    name="digests",
    columns=("n", "inputs", "text"),
    key=1,
    ddl="CREATE TABLE digests(n INTEGER PRIMARY KEY, inputs TEXT NOT NULL, text TEXT NOT NULL) STRICT",
)


class State(Struct, frozen=True):
    """Turns so far, what is not digested yet, and what was given up."""

    turns: int = 0
    open: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    idle_until: int = 0


def words_of(recorded: Recorded) -> list[str]:
    data = recorded.data
    return data.text.split() if isinstance(data, TurnRecorded) and isinstance(data.text, str) else []


def needs(recorded: Recorded) -> Sequence[Key]:
    return [("words", (word,)) for word in words_of(recorded)]


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    event = recorded.event
    assert event is not None
    data = recorded.data
    if isinstance(data, StepFailed):
        if not data.dead or data.step != STEP:
            return state, ()
        left = tuple(one for one in state.open if one not in data.inputs)
        return msgspec.structs.replace(state, open=left, dead=state.dead + data.inputs), ()
    if isinstance(data, DeadRetried):
        left = tuple(one for one in state.dead if one not in data.inputs)
        return msgspec.structs.replace(state, open=data.inputs + state.open, dead=left), ()
    if event.type == "toy.digested":
        made = msgspec.json.decode(event.data, type=dict[str, Any])
        inputs = made["inputs"]
        row = (made["n"], ",".join(inputs), made["text"])
        left = tuple(one for one in state.open if one not in inputs)
        return msgspec.structs.replace(state, open=left), (Put("digests", row),)
    if not isinstance(data, TurnRecorded):
        return state, ()
    if data.text == POISON:
        raise Invalid("this turn is poison")
    text = data.text if isinstance(data.text, str) else data.text.sha256
    changes: list[Change] = [Add("said", (recorded.seq, text)), Append("words.jsonl", recorded.seq, line(recorded))]
    for word in words_of(recorded):
        before = rows.get("words", (word,))
        if word == "forget":
            changes.append(Drop("words", (word,)))
        else:
            changes.append(
                Put("words", (word, (before[1] if before else 0) + words_of(recorded).count(word), event.id))
            )
    changes.append(WriteFile("last.txt", text.encode()))
    return msgspec.structs.replace(state, turns=state.turns + 1, open=(*state.open, event.id)), changes


def line(recorded: Recorded) -> bytes:
    return b'{"seq":%d,"event":%s}\n' % (recorded.seq, recorded.raw)


def decide(state: State, now_us: int) -> Wanted | Due | None:
    if now_us < state.idle_until:
        return Due(state.idle_until)
    return Wanted(STEP, state.open[:PAIR]) if len(state.open) >= PAIR else None


async def digest(wanted: Wanted, view: View) -> Made:
    """The digest that is never wrong."""
    return Made("toy.digested", {"text": "+".join(wanted.inputs)}, tokens=7)


def toy(*, version: int = 1, act: Act | None = None, **more: Any) -> Service[State]:
    """The service; it decides only where `act` is given."""
    return Service(
        name="toy",
        version=version,
        tables=(WORDS, SAID, DIGESTS),
        state=State,
        fold=more.pop("fold", fold),
        needs=needs,
        decide=more.pop("decide", decide) if act is not None else None,
        act=act,
        decisions=("toy.digested",),
        blobs=True,
        **more,
    )


def turn(text: str, *, id: str, space: str = "alice", session: str = "s") -> tuple[str, bytes]:
    """Subject and bytes of a turn."""
    data = TurnRecorded(role="user", text=text)
    event = events.make(data, id=id, space=space, session=session, time=times.from_micros(1_764_000_000_000_000))
    return ids.event_subject(ids.token(space), "turn.recorded"), events.encode(event)


async def say(bus: Bus, text: str, *, id: str, space: str = "alice") -> int:
    subject, raw = turn(text, id=id, space=space)
    return (await bus.publish(subject, raw)).seq


class Clock:
    """A clock that is set by hand, in microseconds."""

    def __init__(self) -> None:
        self.now_us = 1_764_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def pass_s(self, seconds: float) -> None:
        self.now_us += int(seconds * 1e6)


@asynccontextmanager
async def running(*workers: Worker[Any]) -> AsyncIterator[None]:
    """The workers at work for the length of the block; then they stop cleanly."""
    readies = [asyncio.Event() for _ in workers]
    async with asyncio.TaskGroup() as group:
        for worker, ready in zip(workers, readies, strict=True):
            group.create_task(worker.run(ready))
        for ready in readies:
            await ready.wait()
        try:
            yield
        finally:
            for worker in workers:
                worker.stop()


async def until(condition: Callable[[], object], *, patience_s: float = WAIT_S) -> None:
    """Look every 10 ms until `condition` is met; a test that waits in vain fails, as a rule after 10 s."""
    async with asyncio.timeout(patience_s):
        while True:
            found = condition()
            if await found if isinstance(found, Awaitable) else found:
                return
            await asyncio.sleep(0.01)


def memory() -> tuple[MemoryLog, MemoryBus]:
    log = MemoryLog()
    return log, MemoryBus(log)


def view_file(home: Home, space: str = "alice", service: str = "toy") -> Path:
    return home.spaces / ids.token(space) / "views" / f"{service}.db"


def rows(path: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """What a view says; nothing while there is none."""
    if not path.exists():
        return []
    db: sqlite3.Connection = connect(path.resolve(), readonly=True)
    try:
        return db.execute(sql, values).fetchall()
    finally:
        db.close()


def applied(home: Home, space: str = "alice", service: str = "toy") -> int:
    found = rows(view_file(home, space, service), "SELECT value FROM meta WHERE key = 'applied_seq'")
    return int(found[0][0]) if found else 0


def dump(home: Home, space: str = "alice", service: str = "toy") -> dict[str, Any]:
    """Everything a service left of a space: the rows of all its tables, and its files byte for byte."""
    path = view_file(home, space, service)
    tables = [row[0] for row in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    found: dict[str, Any] = {}
    for table in tables:
        if table.endswith(("_data", "_idx", "_docsize")):  # how an index is cut into segments depends on the batches
            continue
        where = " WHERE key NOT IN ('epoch')" if table == "meta" else ""
        found[table] = sorted(rows(path, f"SELECT * FROM {table}{where}"), key=repr)
    for (table,) in rows(path, "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%fts5%'"):
        found[f"{table} says"] = indexed(path, table)
    root = home.spaces / ids.token(space)
    for file in sorted(path for path in root.rglob("*") if path.is_file() and "views" not in path.parts):
        if file.name != "epoch":
            found[str(file.relative_to(root))] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def indexed(path: Path, table: str) -> list[tuple[Any, ...]]:
    """Every word of a full-text index, with the row and place where it stands."""
    db: sqlite3.Connection = connect(path.resolve(), readonly=True)
    try:
        db.execute("PRAGMA query_only=OFF")
        db.execute(f"CREATE VIRTUAL TABLE temp.said_words USING fts5vocab('main', '{table}', 'instance')")
        return db.execute("SELECT * FROM temp.said_words").fetchall()
    finally:
        db.close()


def ledger(home: Home, space: str = "alice") -> bytes:
    return b"".join(path.read_bytes() for path in sorted((home.spaces / ids.token(space) / "log").glob("*.jsonl")))
