"""Both legs over the same turns: what is near and what matches, filtered alike, fused. Runs on a view's thread."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lamina import text
from lamina.query.fuse import LONG_CHARS, REACH, Beside, Fact, Scope, fuse, scales, shortlist
from lamina.query.keywords import WITHIN, Ranking, closeness, filters, in_parts, scored
from lamina.query.latest import FIRST, Told, asks_present, latest
from lamina.query.moments import in_time
from lamina.records import Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lamina.query.vectors import Near

NEAREST = 100
"""Candidates of the vector leg."""
SHORTLIST = 100
"""Of all candidates, those whose neighbours are looked at."""


def hybrid(
    db: sqlite3.Connection,
    ranking: Ranking,
    near: Near,
    query: str,
    where: Where,
    most: int = SHORTLIST,
    shown: int = FIRST,
) -> Sequence[text.Ranked]:
    """The best of the candidates of both legs with both scores each, best first; at least `most` if there are, of
    which the first `shown` are the answer."""
    import numpy as np

    seqs, cosines = near.seqs[: len(near.cosines)], near.cosines
    conditions, values = filters(where)
    if conditions:
        sql = f"SELECT t.seq FROM turns t WHERE 1 {conditions}"  # noqa: S608 - own names and marks
        allowed = np.fromiter((row[0] for row in db.execute(sql, values)), dtype=np.int64)
        kept = np.isin(seqs, allowed)
        seqs, cosines = seqs[kept], cosines[kept]
    if not len(seqs):
        return ranking.ranked
    best = np.argpartition(-cosines, min(NEAREST, len(cosines)) - 1)[:NEAREST]
    known = {one.turn for one in ranking.candidates}
    nearest = [*(int(seq) for seq in seqs[best]), *_in_time(db, ranking, seqs, cosines)]
    new = [seq for seq in dict.fromkeys(nearest) if seq not in known]
    turns = _turns(db, [*known, *new])
    others = [one for seq, (one, _) in turns.items() if seq not in known]
    candidates = [*ranking.candidates, *scored(db, ranking.asked.words or query, ranking.expression, others)]
    keyword = {one.turn: one for one in text.rank(candidates, query)}
    facts = [
        Fact(one, turns[one.turn][1], keyword.get(one.turn), near.cosine(one.turn))
        for one in candidates
        if one.turn in turns
    ]
    scope = Scope(float(cosines.min()), float(cosines.mean()), float(cosines.max()))
    by = scales(facts, query, len(near.cosines) / max(1, near.texts))
    listed = facts if ranking.asked.spans else shortlist(facts, scope, by, max(most, SHORTLIST))
    beside = _beside(db, [one.turn.turn for one in listed if one.chars < LONG_CHARS], near)
    fused = fuse([replace(one, beside=beside.get(one.turn.turn, ())) for one in listed], query, scope, by)
    if ranking.asked.spans:
        return in_time(fused, closeness(db, ranking.asked, (one.turn for one in fused)))
    return latest(fused, _told(db, query, fused), near.alike, shown) if asks_present(query) else fused


def _told(db: sqlite3.Connection, query: str, ranked: Sequence[text.Ranked]) -> dict[int, Told]:
    """What is to be known of the best turns to tell which is the newer of two of the same."""
    words = set(text.query_terms(query))
    sql = "SELECT seq, time_us, role, length(text), text FROM turns WHERE seq IN"
    return {
        seq: Told(time_us, role, chars, frozenset(words.intersection(text.query_terms(said))))
        for seq, time_us, role, chars, said in _in_parts(db, sql, [one.turn for one in ranked[:FIRST]])
    }


def _in_time(
    db: sqlite3.Connection, ranking: Ranking, seqs: NDArray[np.int64], cosines: NDArray[np.float32]
) -> list[int]:
    """The nearest turns of the time that is asked for, near or far as they are among all."""
    import numpy as np

    found: list[int] = []
    for span in ranking.asked.spans:
        sql = "SELECT seq FROM turns WHERE time_us >= ? AND time_us < ?"
        within = np.fromiter((row[0] for row in db.execute(sql, (span.first_us, span.end_us))), dtype=np.int64)
        places = np.flatnonzero(np.isin(seqs, within))
        order = np.argsort(-cosines[places], kind="stable")[:WITHIN]
        found += (int(seq) for seq in seqs[places[order]])
    return found


def _turns(db: sqlite3.Connection, seqs: Sequence[int]) -> dict[int, tuple[text.Candidate, int]]:
    """Some turns and their lengths; those that are not in the journal are left out."""
    sql = "SELECT seq, session, position, role, 0.0, length(text) FROM turns WHERE seq IN"
    return {row[0]: (text.Candidate(*row[:5]), row[5]) for row in _in_parts(db, sql, seqs)}


def _beside(db: sqlite3.Connection, seqs: Sequence[int], near: Near) -> dict[int, list[Beside]]:
    """The turns around each of some turns that have a vector."""
    sql = (
        "SELECT a.seq, b.seq, abs(b.position - a.position), length(b.text) FROM turns a CROSS JOIN turns b "  # noqa: S608
        f"ON b.session = a.session AND b.position BETWEEN a.position - {REACH} AND a.position + {REACH} "
        "AND b.seq <> a.seq WHERE a.seq IN"
    )
    found: dict[int, list[Beside]] = defaultdict(list)
    for turn, other, distance, chars in _in_parts(db, sql, seqs):
        cosine = near.cosine(other)
        if cosine is not None:
            found[turn].append(Beside(distance, chars, cosine))
    return found


def _in_parts(db: sqlite3.Connection, sql: str, seqs: Sequence[int]) -> Iterator[Any]:
    for part in in_parts(seqs):
        yield from db.execute(f"{sql} ({', '.join('?' * len(part))})", part)
