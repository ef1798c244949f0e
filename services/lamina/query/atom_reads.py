"""Plain reads of the atoms view: lists, decisions, and what a memory was made of. On a view's thread."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from itertools import islice

import msgspec

from lamina import text
from lamina.errors import Invalid
from lamina.knowledge import ATOM_TYPES
from lamina.query.atoms import spans
from lamina.query.layers import noted
from lamina.query.validity import held
from lamina.records import Link
from lamina.requests import AtomInfo, Atoms, AtomsAre, DecisionIs
from lamina.times import from_micros, text_of

MAX_PAGE = 1_000
MAX_PAGE_BYTES = 700_000
MOST_STEPS = 200
MARK = re.compile(r"[0-9a-f]{8}")
"""Behind a line of a rendered file: the beginning of the id of the atom that it comes from."""
_COLUMNS = (
    *("id", "type", "text", "status", "by", "reason", "subject", "slot", "value", "scope", "polarity", "priority"),
    *("count", "time", "last_us", "known_us", "valid_from", "until", "session", "project", "said_by"),
    *("quarantine", "decision", "sources"),
)
_SELECT = f"SELECT {', '.join(f'a.{column}' for column in _COLUMNS)} FROM atoms a"  # noqa: S608 - own names
_DECISION = "SELECT id, kind, by, model, inputs, atoms, tokens, at_us, error, undone FROM decisions WHERE id = ?"


def atoms(db: sqlite3.Connection, request: Atoms) -> AtomsAre:
    """A page, newest first. `Invalid` for an unknown type."""
    unknown = sorted(set(request.types) - set(ATOM_TYPES))
    if unknown:
        raise Invalid(f"unknown type {unknown[0]!r}; there are: {', '.join(ATOM_TYPES)}")
    limit = max(1, min(request.limit, MAX_PAGE))
    if request.id:
        return _page([_info(row) for row in _line(db, request.id)], limit)
    conditions, values = _conditions(request)
    if request.query:
        expression = text.match(request.query)
        if expression is None:
            return AtomsAre(atoms=(), more=False)
        conditions.append("a.n IN (SELECT rowid FROM atoms_fts WHERE atoms_fts MATCH ?)")
        values.append(expression)
    sql = f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY a.n DESC"
    at = request.true_at
    if at is None:
        return _page([_info(row) for row in db.execute(f"{sql} LIMIT ?", (*values, limit + 1))], limit)
    found = (one for row in db.execute(sql, values) if held((one := _info(row)).valid_from, one.until, one.time, at))
    return _page(list(islice(found, limit + 1)), limit)


def decision(db: sqlite3.Connection, id: str) -> DecisionIs:
    """The decision of this id, or the one that made the atom of this id."""
    made_by = db.execute("SELECT decision FROM atoms WHERE id = ?", (id,)).fetchone()
    row = db.execute(_DECISION, (made_by[0] if made_by else id,)).fetchone()
    if row is None:
        return DecisionIs()
    return DecisionIs(
        id=row[0],
        kind=row[1],
        by=row[2],
        model=row[3],
        inputs=row[4],
        atoms=len(msgspec.json.decode(row[5], type=list[str])),
        tokens=row[6],
        time=text_of(from_micros(row[7])),
        error=row[8],
        undone=bool(row[9]),
    )


def link(db: sqlite3.Connection, id: str) -> Link | None:
    """An atom as the head of a chain: its sources are event ids. `id` is its own, or the mark that files bear."""
    row = db.execute(f"{_SELECT} WHERE a.id = ?", (id,)).fetchone()
    if row is None and MARK.fullmatch(id):
        marked = db.execute(f"{_SELECT} WHERE a.id BETWEEN ? AND ? LIMIT 2", (f"{id}-", f"{id}.")).fetchall()
        row = marked[0] if len(marked) == 1 else None
    if row is None:
        return None
    one = _info(row)
    id = one.id
    by = db.execute("SELECT text FROM atoms WHERE id = ?", (one.by,)).fetchone()
    repeated = db.execute("SELECT sources FROM atoms WHERE by = ? AND status = 'repeated' ORDER BY n", (id,))
    more = [span.id for row in repeated for span in spans(row[0])]
    return Link(
        layer="l1",
        id=one.id,
        text=one.text,
        time=one.time,
        session=one.session,
        sources=tuple(dict.fromkeys((*one.sources, *more))),
        note=noted(one.status, one.reason, one.until, one.quarantine, by[0] if by else ""),
        by=one.decision,
    )


def made_of(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Which atoms were made of some turns, by their event ids."""
    found = {}
    for id in ids:
        row = db.execute("SELECT atoms FROM turns WHERE id = ?", (id,)).fetchone()
        if row is not None:
            found[id] = msgspec.json.decode(row[0], type=tuple[str, ...])
    return found


def _line(db: sqlite3.Connection, id: str) -> list[tuple[object, ...]]:
    """An atom, and over any number of steps what it superseded or repeats and what superseded it, oldest first."""
    known: dict[str, tuple[object, ...]] = {}
    waiting = [id]
    while waiting and len(known) < MOST_STEPS:
        one = waiting.pop()
        row = None if one in known else db.execute(f"{_SELECT} WHERE a.id = ?", (one,)).fetchone()
        if row is None:
            continue
        known[one] = row
        acts = db.execute("SELECT acts, effects FROM atoms WHERE id = ?", (one,)).fetchone()
        waiting += [tie[1] for raw in acts for tie in msgspec.json.decode(raw, type=list[list[str]])]
    time_at = _COLUMNS.index("time")
    return sorted(known.values(), key=lambda row: str(row[time_at]))


def _conditions(request: Atoms) -> tuple[list[str], list[str | int]]:
    conditions, values = ["1"], list[str | int]()
    if request.quarantined:
        conditions.append("a.quarantine <> ''")
    elif request.history:
        conditions.append("a.quarantine = ''")
    elif request.true_at is not None:
        conditions.append("a.status IN ('active', 'contradicted', 'superseded')")
    else:
        conditions.append("a.status IN ('active', 'contradicted')")
    if request.types:
        conditions.append(f"a.type IN ({', '.join('?' * len(request.types))})")
        values += request.types
    if request.session is not None:
        conditions.append("a.session = ?")
        values.append(request.session)
    return conditions, values


def _page(found: list[AtomInfo], limit: int) -> AtomsAre:
    kept: list[AtomInfo] = []
    left = MAX_PAGE_BYTES
    for one in found[:limit]:
        left -= len(msgspec.json.encode(one))
        if left < 0 and kept:
            break
        kept.append(one)
    return AtomsAre(atoms=tuple(kept), more=len(kept) < len(found))


def _info(row: tuple[object, ...]) -> AtomInfo:
    fields = dict(zip(_COLUMNS, row, strict=True))
    fields["last"] = text_of(from_micros(int(str(fields.pop("last_us")))))
    fields["known"] = text_of(from_micros(int(str(fields.pop("known_us")))))
    fields["sources"] = tuple(dict.fromkeys(span.id for span in spans(str(fields["sources"]))))
    return AtomInfo(**fields)  # type: ignore[arg-type]  # the columns, under their own names
