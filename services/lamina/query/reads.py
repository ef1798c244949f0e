"""The plain reads: which ids are known, what was said, where a memory comes from."""

from __future__ import annotations

import sqlite3

import msgspec

from lamina.query.keywords import TURN_COLUMNS
from lamina.records import Link
from lamina.requests import (
    Known,
    KnownIds,
    SessionInfo,
    SessionPage,
    Sessions,
    Turn,
    TurnPage,
    Turns,
)
from lamina.times import from_micros, text_of

MAX_PAGE = 1_000
MAX_PAGE_BYTES = 700_000


def known(db: sqlite3.Connection, request: Known) -> KnownIds:
    """Of what was erased on request the id alone is known: its checksum is empty."""
    found: dict[str, tuple[int, str]] = {}
    for id in request.ids:
        row = db.execute("SELECT seq, sha256 FROM events WHERE id = ?", (id,)).fetchone()
        if row is not None:
            found[id] = (row[0], row[1])
        elif db.execute("SELECT 1 FROM erased WHERE id = ?", (id,)).fetchone() is not None:
            found[id] = (0, "")
    return KnownIds(ids=found)


def turns(db: sqlite3.Connection, request: Turns) -> TurnPage:
    """A page in log order; with `newest`, the last ones. It ends before it is too long for one answer of the bus."""
    limit = max(1, min(request.limit, MAX_PAGE))
    where, values = "seq > ?", [request.after]
    arguments: list[int | str] = list(values)
    if request.session is not None:
        where += " AND session = ?"
        arguments.append(request.session)
    order = "DESC" if request.newest else "ASC"
    sql = f"SELECT {TURN_COLUMNS} FROM turns WHERE {where} ORDER BY seq {order} LIMIT ?"  # noqa: S608 - own names
    page: list[Turn] = []
    left = MAX_PAGE_BYTES
    more = False
    for row in db.execute(sql, (*arguments, limit + 1)):
        turn = _turn(row)
        left -= len(msgspec.json.encode(turn))
        if len(page) == limit or (left < 0 and page):
            more = True
            break
        page.append(turn)
    return TurnPage(turns=tuple(reversed(page) if request.newest else page), more=more)


def sessions(db: sqlite3.Connection, request: Sessions) -> SessionPage:
    rows = db.execute(
        "SELECT session, turns, last_us, ended FROM sessions ORDER BY last_us DESC, session LIMIT ?",
        (max(1, min(request.limit, MAX_PAGE)),),
    )
    return SessionPage(
        sessions=tuple(
            SessionInfo(session=row[0], turns=row[1], last=text_of(from_micros(row[2])), ended=bool(row[3]))
            for row in rows
        )
    )


def why(db: sqlite3.Connection, id: str) -> tuple[Link, ...]:
    """The turns with this id (an event id, or a turn_id or call_id of the caller's own)."""
    rows = db.execute(
        f"SELECT {TURN_COLUMNS} FROM turns WHERE id = ? OR turn_id = ? AND turn_id <> '' ORDER BY seq",  # noqa: S608 - own names
        (id, id),
    )
    return tuple(linked(_turn(row)) for row in rows)


def linked(turn: Turn) -> Link:
    """A turn as the end of a chain."""
    return Link(
        layer="l0",
        id=turn.id,
        text=turn.text,
        time=turn.time,
        session=turn.session,
        seq=turn.seq,
        sources=(turn.id,),
    )


def _turn(row: tuple[object, ...]) -> Turn:
    names = TURN_COLUMNS.split(", ")
    return Turn(**dict(zip(names, row, strict=True)))  # type: ignore[arg-type]
