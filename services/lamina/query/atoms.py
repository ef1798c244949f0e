"""The l1 leg: atoms that a query speaks for, what they came from, and what of each holds. Runs on a view's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from lamina import text
from lamina.knowledge import ATOM_TYPES, Span
from lamina.records import Where
from lamina.times import micros

QUARANTINED = "quarantined"
"""The type to ask for what is kept, and never given unless asked."""
CANDIDATES = 100
MOST_STEPS = 16
"""From an atom to what holds instead of what replaced it."""
MOST_SOURCES = 8
"""Of what was said again and again, the turns of the first statements."""
COLUMNS = (
    "a.id, a.n, a.type, a.text, a.status, a.by, a.reason, a.priority, a.count, a.time, a.time_us, a.last_us, "
    "a.until, a.session, a.said_by, a.quarantine, a.sources"
)
_FOUND = (
    f"SELECT {COLUMNS}, -bm25(atoms_fts) AS score FROM atoms_fts CROSS JOIN atoms a ON a.n = atoms_fts.rowid "  # noqa: S608
    "WHERE atoms_fts MATCH ? {conditions} ORDER BY score DESC, a.n LIMIT ?"
)
_COUNTED = "SELECT count(*) FROM (SELECT 1 FROM atoms_fts WHERE atoms_fts MATCH ? LIMIT ?)"
_KEYS = 500


class AtomFound(Struct, frozen=True, kw_only=True):
    """An atom as the view holds it. `sources` are the event ids behind it, those of its repetitions among them.

    `score` is its BM25, 0 where it is here for another's sake.
    """

    id: str
    n: int
    type: str
    text: str
    status: str
    by: str
    reason: str
    priority: int
    count: int
    time: str
    time_us: int
    last_us: int
    until: str
    session: str
    said_by: str
    quarantine: str
    sources: tuple[str, ...]
    score: float = 0.0


class AtomsFound(Struct, frozen=True):
    """The atoms that a query speaks for, best first, and those that replaced one of them, by id."""

    ranked: Sequence[AtomFound] = ()
    others: Mapping[str, AtomFound] = msgspec.field(default_factory=dict)

    def holding(self, atom: AtomFound) -> AtomFound:
        """What stands instead of a superseded or contradicted atom, as far as is known; of any other, itself."""
        seen = {atom.id}
        now = atom
        while now.status in ("superseded", "contradicted") and now.by in self.others and now.by not in seen:
            now = self.others[now.by]
            seen.add(now.id)
            if atom.status == "contradicted":
                break
        return now


def wanted(where: Where) -> Where | None:
    """What of a filter is about atoms; None where it excludes all of them."""
    if not where.types:
        return where
    types = tuple(one for one in where.types if one in ATOM_TYPES or one == QUARANTINED)
    return msgspec.structs.replace(where, types=types) if types else None


def without(where: Where) -> Where | None:
    """What of a filter is about turns; None where it asks for atoms alone."""
    if not where.types:
        return where
    types = tuple(one for one in where.types if one not in ATOM_TYPES and one != QUARANTINED)
    return msgspec.structs.replace(where, types=types) if types else None


def search(db: sqlite3.Connection, query: str, where: Where, limit: int = CANDIDATES) -> AtomsFound:
    """At most `limit` atoms with a word of `query`. One that repeats another counts for that; what was undone is
    not found, what is quarantined only where `where.types` says so."""
    expression = text.match(query, lambda one: int(db.execute(_COUNTED, (one, text.MATCH_ROWS + 1)).fetchone()[0]))
    if expression is None:
        return AtomsFound()
    conditions, values = _conditions(where)
    rows = db.execute(_FOUND.format(conditions=conditions), (expression, *values, limit)).fetchall()
    found = [_atom(row[:-1], row[-1]) for row in rows]
    others = _replacing(db, found)
    best: dict[str, AtomFound] = {}
    for one in found:
        stands = others.get(one.by) if one.status == "repeated" else one
        if stands is not None and stands.status != "undone":
            known = best.get(stands.id)
            score = max(one.score, known.score if known is not None else 0.0)
            best[stands.id] = msgspec.structs.replace(stands, score=score)
    ranked = sorted(best.values(), key=lambda one: (-one.score, one.n))
    return AtomsFound(
        [_with_repetitions(db, one) for one in ranked],
        {id: _with_repetitions(db, one) for id, one in others.items()},
    )


def _replacing(db: sqlite3.Connection, found: Sequence[AtomFound]) -> dict[str, AtomFound]:
    """What the found atoms repeat, were superseded by or are contradicted by, over a few steps, by id."""
    others: dict[str, AtomFound] = {}
    wanted = {one.by for one in found if one.by}
    for _ in range(MOST_STEPS):
        step = _by_id(db, wanted - others.keys())
        others |= step
        wanted = {one.by for one in step.values() if one.by and one.status in ("repeated", "superseded")}
        if not wanted - others.keys():
            break
    return others


def _by_id(db: sqlite3.Connection, ids: set[str]) -> dict[str, AtomFound]:
    found: dict[str, AtomFound] = {}
    keys = sorted(ids)
    for start in range(0, len(keys), _KEYS):
        part = keys[start : start + _KEYS]
        sql = f"SELECT {COLUMNS} FROM atoms a WHERE a.id IN ({', '.join('?' * len(part))})"  # noqa: S608 - own marks
        found |= {row[0]: _atom(row) for row in db.execute(sql, part)}
    return found


def _with_repetitions(db: sqlite3.Connection, atom: AtomFound) -> AtomFound:
    if atom.count < 2:
        return atom
    rows = db.execute(
        "SELECT sources FROM atoms WHERE by = ? AND status = 'repeated' ORDER BY n LIMIT ?", (atom.id, MOST_SOURCES)
    )
    more = [span.id for row in rows for span in spans(row[0])]
    return msgspec.structs.replace(atom, sources=tuple(dict.fromkeys((*atom.sources, *more))))


def _atom(row: tuple[object, ...], score: float = 0.0) -> AtomFound:
    names = AtomFound.__struct_fields__[: len(row)]
    fields = dict(zip(names, row, strict=True))
    fields["sources"] = tuple(dict.fromkeys(span.id for span in spans(str(fields["sources"]))))
    return AtomFound(**fields, score=score)  # type: ignore[arg-type]  # the columns, in the order of the fields


def spans(raw: str) -> tuple[Span, ...]:
    """The sources of an atom as its row has them."""
    return msgspec.json.decode(raw, type=tuple[Span, ...])


def _conditions(where: Where) -> tuple[str, list[str | int]]:
    conditions: list[str] = ["AND a.removed_by = ''"]
    values: list[str | int] = []
    types = [one for one in where.types if one != QUARANTINED]
    if QUARANTINED not in where.types:
        conditions.append("AND a.quarantine = ''")
    elif not types:
        conditions.append("AND a.quarantine <> ''")
    for column, allowed in (
        ("session", where.sessions),
        ("agent", where.agents),
        ("project", where.projects),
        ("type", types),
    ):
        if allowed:
            conditions.append(f"AND a.{column} IN ({', '.join('?' * len(allowed))})")
            values.extend(allowed)
    if where.since is not None:
        conditions.append("AND a.last_us >= ?")
        values.append(micros(where.since))
    if where.until is not None:
        conditions.append("AND a.first_us <= ?")
        values.append(micros(where.until))
    return " ".join(conditions), values
