"""The keyword leg: candidates from the journal's index, filtered before they are ranked. Runs on a view's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lamina import text
from lamina.records import Where
from lamina.requests import Turn
from lamina.times import micros

CANDIDATES = 200
TURN_COLUMNS = "seq, id, type, session, role, name, turn_id, agent, project, time, text"
_COLUMNS = "SELECT t.seq, t.session, t.position, t.role, f.score FROM"
_FILTERED = text.FTS_SEARCH.replace("WHERE", "CROSS JOIN turns t ON t.seq = turns_fts.rowid WHERE")


class Found(Struct, frozen=True):
    """A turn that the query speaks for, its keyword score, and the parts that add up to it."""

    turn: Turn
    score: float
    parts: Mapping[str, float]


def search(db: sqlite3.Connection, query: str, where: Where, limit: int) -> list[Found]:
    """The best `limit` turns for `query`, best first, ties by age; none when it has no word to look for."""
    conditions, values = _filters(where)
    expression = text.match(query, None if conditions else lambda one: _rows(db, one))
    if expression is None:
        return []
    found = _FILTERED.replace("ORDER BY", f"{conditions} ORDER BY") if conditions else text.FTS_SEARCH
    sql = f"{_COLUMNS} ({found}) f CROSS JOIN turns t ON t.seq = f.rowid"
    rows = db.execute(sql, (expression, *values, max(limit, CANDIDATES)))
    finds = [text.Candidate(*row) for row in rows]
    around = _around(db, finds, conditions, values) if len(finds) < limit else []
    ranked = text.rank([*finds, *around], query)[:limit]
    return [Found(_turn(db, found.turn), found.score, found.parts) for found in ranked]


def _around(
    db: sqlite3.Connection, finds: Sequence[text.Candidate], conditions: str, values: Sequence[str | int]
) -> list[text.Candidate]:
    """The turns beside few finds, which fill an answer that would be short without them."""
    known = {find.turn for find in finds}
    sql = (
        "SELECT t.seq, t.session, t.position, t.role, 0.0 FROM turns t "  # noqa: S608 - own names and marks
        f"WHERE t.session = ? AND t.position BETWEEN ? AND ? {conditions}"
    )
    beside: dict[int, text.Candidate] = {}
    for find in finds:
        first, last = find.position - text.AROUND_TURNS, find.position + text.AROUND_TURNS
        for row in db.execute(sql, (find.session, first, last, *values)):
            if row[0] not in known:
                beside[row[0]] = text.Candidate(*row)
    return list(beside.values())


def _rows(db: sqlite3.Connection, expression: str) -> int:
    """How many turns an expression finds, counted no further than matters."""
    return int(db.execute(text.FTS_COUNT, (expression, text.MATCH_ROWS + 1)).fetchone()[0])


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
