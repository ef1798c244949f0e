"""The keyword leg: candidates from the journal's index, filtered before they are ranked. Runs on a view's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from math import log

from msgspec import Struct
from msgspec.structs import replace

from lamina import text
from lamina.query.moments import Asked, Span, asked, in_time
from lamina.records import Where
from lamina.requests import Turn
from lamina.times import micros

CANDIDATES = 200
WITHIN = 50
"""Candidates for their words among the turns of a time that is asked for."""
_KEYS = 500
TURN_COLUMNS = "seq, id, type, session, role, name, turn_id, agent, project, time, text"
_COLUMNS = "SELECT t.seq, t.session, t.position, t.role, f.score FROM"
_FILTERED = text.FTS_SEARCH.replace("WHERE", "CROSS JOIN turns t ON t.seq = turns_fts.rowid WHERE")


class Found(Struct, frozen=True):
    """A turn that the query speaks for, its score, and the parts that add up to it."""

    turn: Turn
    score: float
    parts: Mapping[str, float]


class Ranking(Struct, frozen=True):
    """The keyword leg: its candidates for a query, the expression that found them, and the time that is asked for.

    `closeness` is that of the candidates to this time, where there is one.
    """

    query: str = ""
    candidates: Sequence[text.Candidate] = ()
    expression: str | None = None
    asked: Asked = Asked("")
    closeness: Mapping[int, float] = {}

    @property
    def ranked(self) -> Sequence[text.Ranked]:
        """The candidates, best first, by their words and by the time that is asked for."""
        found = text.rank(self.candidates, self.query)
        return in_time(found, self.closeness, (one.turn for one in self.candidates)) if self.closeness else found


def search(db: sqlite3.Connection, query: str, where: Where, limit: int, now: datetime | None = None) -> Ranking:
    """At least the best `limit` turns for `query`, ties by age; none when it has no word or time to look for.

    A phrase of time means what it does at `now`; without `now` it is as any other word.
    """
    question = asked(query, now) if now is not None else Asked(query)
    conditions, values = filters(where)
    expression = text.match(question.words, None if conditions else lambda one: _rows(db, one))
    candidates: list[text.Candidate] = []
    if expression is not None:
        finds = _finds(db, expression, conditions, values, max(limit, CANDIDATES))
        if len(finds) < CANDIDATES:
            finds = _with_common_terms(db, question.words, finds)
        candidates = [*finds, *(_around(db, finds, conditions, values) if len(finds) < limit else [])]
    known = {one.turn for one in candidates}
    for span in question.spans:
        for one in _within(db, span, expression, where, limit):
            if one.turn not in known:
                known.add(one.turn)
                candidates.append(one)
    return Ranking(query, candidates, expression, question, closeness(db, question, known))


def closeness(db: sqlite3.Connection, question: Asked, turns: Iterable[int]) -> dict[int, float]:
    """How close each of some turns is to the time that is asked for; nothing where none is."""
    if not question.spans:
        return {}
    found: dict[int, float] = {}
    for part in in_parts(turns):
        sql = f"SELECT seq, time_us FROM turns WHERE seq IN ({', '.join('?' * len(part))})"  # noqa: S608 - own marks
        found.update((seq, question.closeness(time_us)) for seq, time_us in db.execute(sql, part))
    return found


def in_parts(keys: Iterable[int]) -> Iterator[Sequence[int]]:
    """Keys in parts that fit a statement."""
    rest = iter(keys)
    while part := list(islice(rest, _KEYS)):
        yield part


def _finds(
    db: sqlite3.Connection, expression: str, conditions: str, values: Sequence[str | int], most: int
) -> list[text.Candidate]:
    found = _FILTERED.replace("ORDER BY", f"{conditions} ORDER BY") if conditions else text.FTS_SEARCH
    sql = f"{_COLUMNS} ({found}) f CROSS JOIN turns t ON t.seq = f.turn"
    return [text.Candidate(*row) for row in db.execute(sql, (expression, *values, most))]


def _within(
    db: sqlite3.Connection, span: Span, expression: str | None, where: Where, limit: int
) -> list[text.Candidate]:
    """Turns of a span: those that have a word of the question, and the newest, as far as there are not enough."""
    conditions, values = filters(where)
    conditions += " AND t.time_us >= ? AND t.time_us < ?"
    values += [span.first_us, span.end_us]
    finds = _finds(db, expression, conditions, values, WITHIN) if expression is not None else []
    if len(finds) >= limit:
        return finds
    columns = "t.seq, t.session, t.position, t.role, 0.0"
    sql = f"SELECT {columns} FROM turns t WHERE 1 {conditions} ORDER BY t.seq DESC LIMIT ?"  # noqa: S608 - own names
    known = {one.turn for one in finds}
    newest = (text.Candidate(*row) for row in db.execute(sql, (*values, limit)))
    return [*finds, *(one for one in newest if one.turn not in known)]


def scored(
    db: sqlite3.Connection, query: str, expression: str | None, turns: Sequence[text.Candidate]
) -> list[text.Candidate]:
    """Some other turns with the score that `search` would give them; those without a word of the query keep 0."""
    if expression is None or not turns:
        return list(turns)
    # The plus keeps SQLite from asking the index for each turn by itself, which takes as many searches.
    sql = text.FTS_SEARCH.replace("ORDER BY", f"AND +turns_fts.rowid IN ({', '.join('?' * len(turns))}) ORDER BY")
    rows = db.execute(sql, (expression, *(one.turn for one in turns), len(turns)))
    matched = dict(rows.fetchall())
    return _with_common_terms(db, query, [replace(one, score=matched.get(one.turn, 0.0)) for one in turns])


def found(db: sqlite3.Connection, ranked: Iterable[text.Ranked]) -> list[Found]:
    """The turns behind a ranking, in its order."""
    return [Found(_turn(db, one.turn), one.score, one.parts) for one in ranked]


def by_event(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Turn]:
    """Some turns by the ids of their events."""
    turns: dict[str, Turn] = {}
    for id in ids:
        row = db.execute("SELECT seq FROM events WHERE id = ?", (id,)).fetchone()
        if row is not None and db.execute("SELECT 1 FROM turns WHERE seq = ?", row).fetchone() is not None:
            turns[id] = _turn(db, row[0])
    return turns


def _with_common_terms(db: sqlite3.Connection, query: str, finds: Sequence[text.Candidate]) -> list[text.Candidate]:
    """The finds of a small space with what terms that stand in half of its turns or more say of them.

    FTS5 gives such a term next to no weight (its idf would be negative); in a young space that may be every term of
    the query. Here it has log(1 + (N - n + 0.5) / (n + 0.5)), which is positive (as in Lucene's BM25).
    """
    turns = db.execute("SELECT count(*) FROM (SELECT 1 FROM turns LIMIT ?)", (2 * CANDIDATES + 1,)).fetchone()[0]
    if turns > 2 * CANDIDATES:
        return list(finds)
    more: dict[int, float] = dict.fromkeys((find.turn for find in finds), 0.0)
    for term in text.query_terms(query):
        holders: dict[int, float] = {}
        for column, weight in text.FTS_WEIGHTS.items():
            for (turn,) in db.execute(text.FTS_ROWS, (f'{column} : "{term}"',)):
                holders[turn] = holders.get(turn, 0.0) + weight
        if 2 * len(holders) < turns:
            continue
        idf = log(1 + (turns - len(holders) + 0.5) / (len(holders) + 0.5))
        for turn in holders.keys() & more.keys():
            more[turn] += idf * holders[turn]
    return [replace(find, score=find.score + more[find.turn]) for find in finds]


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


def filters(where: Where) -> tuple[str, list[str | int]]:
    """The SQL conditions of `where` on `turns t`, and their values."""
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
