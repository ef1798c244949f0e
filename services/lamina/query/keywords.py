"""The keyword leg: candidates from the journal's index, filtered before they are ranked. Runs on a view's thread."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from lamina.records import Where
from lamina.text import match
from lamina.times import micros

CANDIDATES = 200
COLUMNS = "t.seq, t.id, t.type, t.session, t.role, t.name, t.turn_id, t.agent, t.project, t.time, t.time_us, t.text"


class Candidate(Struct, frozen=True):
    """A turn that holds a word of the query, with its BM25 score (higher is better)."""

    seq: int
    id: str
    type: str
    session: str
    role: str
    name: str
    turn_id: str
    agent: str
    project: str
    time: str
    time_us: int
    text: str
    score: float


def search(db: sqlite3.Connection, query: str, where: Where, limit: int) -> list[Candidate]:
    """The best candidates for `query`, best first, ties by age; none when the query has no word to look for."""
    expression = match(query)
    if expression is None:
        return []
    conditions, values = _filters(where)
    sql = (
        f"SELECT {COLUMNS}, -f.rank FROM turns_fts f JOIN turns t ON t.seq = f.rowid "  # noqa: S608 - own names
        f"WHERE turns_fts MATCH ? {conditions} ORDER BY f.rank, f.rowid LIMIT ?"
    )
    rows = db.execute(sql, (expression, *values, max(limit, CANDIDATES)))
    return [Candidate(*row) for row in rows]


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
