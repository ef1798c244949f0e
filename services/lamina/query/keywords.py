"""The keyword leg: candidates from the journal's index, filtered before they are ranked. Runs on a view's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from msgspec import Struct

from lamina import text
from lamina.records import Where
from lamina.requests import Turn
from lamina.times import micros

CANDIDATES = 200
TURN_COLUMNS = "seq, id, type, session, role, name, turn_id, agent, project, time, text"
_COLUMNS = "SELECT t.seq, t.session, t.position, t.role"
_JOIN = "CROSS JOIN turns t ON t.seq ="
_MATCH = "turns_fts MATCH ? AND f.rank MATCH 'bm25(1.0, 0.5)'"
_BEST = "ORDER BY f.rank, f.rowid LIMIT ?"


class Found(Struct, frozen=True):
    """A turn that the query speaks for, its keyword score, and the parts that add up to it."""

    turn: Turn
    score: float
    parts: Mapping[str, float]


def search(db: sqlite3.Connection, query: str, where: Where, limit: int) -> list[Found]:
    """The best `limit` turns for `query`, best first, ties by age; none when it has no word to look for."""
    expression = text.match(query)
    if expression is None:
        return []
    conditions, values = _filters(where)
    if conditions:  # the filter comes before the ranking: every find is joined
        sql = f"{_COLUMNS}, -f.rank FROM turns_fts f {_JOIN} f.rowid WHERE {_MATCH} {conditions} {_BEST}"
    else:  # the best alone are joined
        best = f"SELECT rowid, -rank AS score FROM turns_fts f WHERE {_MATCH} {_BEST}"  # noqa: S608 - own names
        sql = f"{_COLUMNS}, f.score FROM ({best}) f {_JOIN} f.rowid"
    rows = db.execute(sql, (expression, *values, max(limit, CANDIDATES)))
    ranked = text.rank((text.Candidate(*row) for row in rows), query)[:limit]
    return [Found(_turn(db, found.turn), found.score, found.parts) for found in ranked]


def _turn(db: sqlite3.Connection, seq: int) -> Turn:
    row = db.execute(f"SELECT {TURN_COLUMNS} FROM turns WHERE seq = ?", (seq,)).fetchone()  # noqa: S608 - own names
    return Turn(**dict(zip(TURN_COLUMNS.split(", "), row, strict=True)))


def _filters(where: Where) -> tuple[str, list[str | int]]:
    conditions: list[str] = []
    values: list[str | int] = []
    for column, wanted in (
        ("session", where.sessions),
        ("agent", where.agents),
        ("project", where.projects),
        ("type", where.types),
    ):
        if wanted:
            conditions.append(f"AND t.{column} IN ({', '.join('?' * len(wanted))})")
            values.extend(wanted)
    if where.since is not None:
        conditions.append("AND t.time_us >= ?")
        values.append(micros(where.since))
    if where.until is not None:
        conditions.append("AND t.time_us <= ?")
        values.append(micros(where.until))
    return " ".join(conditions), values
