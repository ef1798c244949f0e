"""Reads of the persona: as it is, as it was, what changed, and where a line comes from. On a view's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lamina.knowledge import SECTIONS
from lamina.records import Item, Link
from lamina.requests import PersonaIs, PersonaOf, Recall, Revision
from lamina.runtime.apply import read_meta
from lamina.text import terms
from lamina.text.persona import Shown, body, line_text, listed
from lamina.times import from_micros, text_of
from lamina.tokens import count

STANDING_CHARS = 4_000
MAX_CHANGES = 1_000
_REVISION = "n, seq, at_us, event, kind, shown, over"
_REMOVED, _GONE = 1, 3
_NONE = (0, 0, 0, "", "", "[]", 0)


def persona(db: sqlite3.Connection, request: PersonaOf) -> PersonaIs:
    """The persona of this view; before its first revision there is none, and `n` is 0."""
    sql = f"SELECT {_REVISION} FROM revisions ORDER BY n DESC LIMIT 1"  # noqa: S608 - own names
    row = db.execute(sql).fetchone() or _NONE
    changes: tuple[Revision, ...] = ()
    if request.changes > 0:
        changes = _changes(db, row[0], min(request.changes, MAX_CHANGES))
    text = _every(db) if request.every else _body(db, row) if row[0] else ""
    time = text_of(from_micros(row[2])) if row[0] else ""
    return PersonaIs(text=text, n=row[0], seq=row[1], time=time, over=row[6], changes=changes)


class Line(Struct, frozen=True):
    """A line that is shown, and when it was said last."""

    id: str
    text: str
    source: str
    time_us: int


class Known(Struct, frozen=True):
    """What is always known: the lines as they stand in the file, and each of them."""

    text: str = ""
    lines: tuple[Line, ...] = ()


def known(db: sqlite3.Connection) -> Known:
    """The persona as it is put before a model; empty where nothing is known."""
    state = msgspec.json.decode(read_meta(db, "state", b"{}"), type=dict[str, Any])
    places = state.get("shown", [])
    if not places and not state.get("over"):
        return Known()
    row = (0, 0, 0, "", "", msgspec.json.encode(places), state["over"])
    lines = []
    for _, id in places:
        shown = _line(db, id)
        if shown is not None:
            source, at_us = db.execute(
                "SELECT iif(atom = '', edit, atom), last_us FROM lines WHERE id = ?", (id,)
            ).fetchone()
            lines.append(Line(id, shown.text, source, at_us))
    return Known(_body(db, row, note=False), tuple(lines))


def with_lines(items: tuple[Item, ...], lines: Sequence[Line], request: Recall, space: str) -> tuple[Item, ...]:
    """An answer with those lines of the persona before it that have a word of the query, within limit and budget."""
    asked = set(terms(request.query))
    found: list[Item] = []
    left = request.budget_tokens
    for line in lines:
        shared = asked & set(terms(line.text))
        size = count(line.text)
        if shared and len(found) < request.limit and size <= left:
            left -= size
            found.append(_item(line, len(shared) / len(asked), space))
    found.sort(key=lambda item: -item.score)
    for item in items:
        size = count(item.text)
        if len(found) < request.limit and size <= left:
            left -= size
            found.append(item)
    return tuple(found)


def _item(line: Line, score: float, space: str) -> Item:
    return Item(
        layer="l3",
        id=line.id,
        text=line.text,
        score=score,
        parts={"keywords": score},
        time=text_of(from_micros(line.time_us)),
        space=space,
        session="",
        sources=(line.source,),
    )


def link(db: sqlite3.Connection, id: str) -> Link | None:
    """A line as the head of a chain: its sources are the atom, or the edit, behind it."""
    row = db.execute(
        "SELECT atom, other, section, last_us, held, edit, replaces, decision FROM lines WHERE id = ?", (id,)
    ).fetchone()
    if row is None:
        return None
    atom, other, section, last_us, held, edit, replaces, decision = row
    shown = _line(db, id, dead=True)
    sources = tuple(one for one in (edit if not atom else "", atom, other, replaces) if one)
    note = (
        "a person took it out"
        if held == _REMOVED
        else "it is shown no more"
        if held == _GONE
        else "a person wrote it"
        if not atom
        else ""
    )
    return Link(
        layer="l3",
        id=id,
        text=shown.text if shown is not None else "",
        time=text_of(from_micros(last_us)),
        sources=sources,
        note=note or f"in {section}, by the decision {decision}",
    )


def made_of(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Atom -> the lines that say it."""
    found = {}
    for id in ids:
        rows = db.execute("SELECT id FROM lines WHERE atom = ? AND held NOT IN (1, 3) ORDER BY id", (id,)).fetchall()
        if rows:
            found[id] = tuple(row[0] for row in rows)
    return found


def _changes(db: sqlite3.Connection, until: int, most: int) -> tuple[Revision, ...]:
    sql = f"SELECT {_REVISION} FROM revisions WHERE n <= ? ORDER BY n DESC LIMIT ?"  # noqa: S608 - own names
    rows = [*db.execute(sql, (until, most + 1)).fetchall()]
    before = [*rows[1:], _NONE] if len(rows) <= most else rows[1:]
    return tuple(_change(db, row, old) for row, old in zip(rows[:most], before, strict=False))


def _change(db: sqlite3.Connection, row: tuple[Any, ...], old: tuple[Any, ...]) -> Revision:
    then, now = (listed(_body(db, one)) if one[0] else [] for one in (old, row))
    was, now_set = set(then), set(now)
    return Revision(
        n=row[0],
        seq=row[1],
        time=text_of(from_micros(row[2])),
        event=row[3],
        kind=row[4],
        removed=tuple(line for line in then if line not in now_set),
        added=tuple(line for line in now if line not in was),
    )


def _body(db: sqlite3.Connection, row: tuple[Any, ...], *, note: bool = True) -> str:
    shown = msgspec.json.decode(row[5], type=list[tuple[str, str]])
    dead = row[0] > 0  # a line that a person took out since was there then
    return body(shown, lambda id: _line(db, id, dead=dead), over=row[6], standing_chars=STANDING_CHARS, note=note)


def _every(db: sqlite3.Connection) -> str:
    shown = [
        (section, row[0])
        for section in SECTIONS
        for row in db.execute(
            "SELECT id FROM lines WHERE section = ? AND held NOT IN (1, 3) ORDER BY project, first_us, id", (section,)
        )
    ]
    return body(shown, lambda id: _line(db, id), over=0, standing_chars=STANDING_CHARS)


def _line(db: sqlite3.Connection, id: str, *, dead: bool = False) -> Shown | None:
    row = db.execute("SELECT atom, other, section, project, held, text FROM lines WHERE id = ?", (id,)).fetchone()
    if row is None or (row[4] in (_REMOVED, _GONE) and not dead):
        return None
    said = line_text(row[5], _atom(db, row[0]), _atom(db, row[1]))
    return Shown(id=id, section=row[2], text=said, project=row[3]) if said else None


def _atom(db: sqlite3.Connection, id: str) -> tuple[str, str] | None:
    row = db.execute("SELECT text, subject FROM atoms WHERE id = ?", (id,)).fetchone() if id else None
    return (row[0], row[1]) if row is not None else None
