"""What the next revision looks at, and what it finds: rows of this view and of that of the atoms."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lamina.knowledge import SECTIONS
from lamina.persona.decide import Ask
from lamina.persona.fold import OF_A_PERSON, TYPES
from lamina.persona.judge import Standing
from lamina.persona.select import OVERHEAD_CHARS, Candidate
from lamina.persona.tables import ATOMS, LINES, WRITTEN, AtomRow, LineRow, made, strings
from lamina.persona.work import text_of
from lamina.runtime import Due, Wanted
from lamina.store import Row
from lamina.text.lines import escaped

MOST_EVENTS = 200
MOST_CANDIDATES = 300
"""Of a section, by weight: more than could ever be shown of it."""
MOST_EVIDENCE = 64
_KEYS = 200
_LINE = ", ".join(LINES.columns)
_ATOM = ", ".join(ATOMS.columns)
_STANDING = (
    *("id", "type", "scope", "polarity", "subject", "slot", "value", "priority", "quarantine", "said_by", "status"),
    *("by", "until", "count", "first_us", "last_us", "session", "project", "time", "acts", "effects", "text"),
)


def plan(db: sqlite3.Connection, wanted: Wanted, now_us: int, attempt: int) -> Wanted | Due | None:
    """`wanted` with the events that wait, oldest first."""
    del now_us, attempt
    rows = db.execute("SELECT event, seq, atoms, whole FROM pending ORDER BY seq LIMIT ?", (MOST_EVENTS,)).fetchall()
    if not rows:
        return None
    atoms = dict.fromkeys(id for row in rows for id in strings(row[2]))
    ask = Ask(tuple(atoms), any(row[3] for row in rows), rows[-1][1])
    return replace(wanted, inputs=tuple(row[0] for row in rows), ask=ask)


def standings(db: sqlite3.Connection, ask: Ask) -> dict[str, Standing]:
    """How the atoms that are asked for stand, and those that are tied to them; of the view of the atoms."""
    if ask.whole:
        marks = ", ".join("?" * len(TYPES))
        where = f"type IN ({marks}) OR slot LIKE '{OF_A_PERSON}%'"
        return {one.id: one for one in _read(db, where, TYPES)}
    found = {one.id: one for part in _parts(ask.atoms) for one in _read(db, f"id IN ({_marks(part)})", part)}
    near = dict.fromkeys(id for one in found.values() for id in one.near if id not in found)
    found |= {one.id: one for part in _parts(tuple(near)) for one in _read(db, f"id IN ({_marks(part)})", part)}
    return found


def _read(db: sqlite3.Connection, where: str, values: Sequence[str]) -> Iterable[Standing]:
    sql = f"SELECT {', '.join(_STANDING)} FROM atoms WHERE {where}"  # noqa: S608 - own names
    for row in db.execute(sql, values).fetchall():
        fields = dict(zip(_STANDING, row, strict=True))
        near = [tie[1] for key in ("acts", "effects") for tie in msgspec.json.decode(fields.pop(key), type=list[Any])]
        yield Standing(**fields, near=tuple(near), occasions=_occasions(db, fields))


def _occasions(db: sqlite3.Connection, atom: dict[str, Any]) -> int:
    """On how many different days in different sessions it was said: repetitions within one are no evidence."""
    if atom["count"] == 1:
        return 1
    sql = "SELECT session, time FROM atoms WHERE by = ? AND status = 'repeated' LIMIT ?"
    said = [(atom["session"], atom["time"]), *db.execute(sql, (atom["id"], MOST_EVIDENCE))]
    return min(len({session for session, _ in said}), len({(session, time[:10]) for session, time in said}))


def lines_of(db: sqlite3.Connection, atoms: Sequence[str] | None) -> dict[str, LineRow]:
    """Atom -> its line, of these atoms or of all."""
    if atoms is None:
        return {row[1]: made(LineRow, row) for row in db.execute(f"SELECT {_LINE} FROM lines WHERE atom <> ''")}  # noqa: S608 - own names
    found = {}
    for part in _parts(atoms):
        sql = f"SELECT {_LINE} FROM lines WHERE atom IN ({_marks(part)})"  # noqa: S608 - own names
        found.update({row[1]: made(LineRow, row) for row in db.execute(sql, part)})
    return found


def lines_by_id(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, LineRow]:
    """These lines, by their own ids."""
    found = {}
    for part in _parts(ids):
        sql = f"SELECT {_LINE} FROM lines WHERE id IN ({_marks(part)})"  # noqa: S608 - own names
        found.update({row[0]: made(LineRow, row) for row in db.execute(sql, part)})
    return found


def atoms_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, AtomRow]:
    """Those of these atoms that this view knows."""
    found = {}
    for part in _parts(tuple(ids)):
        sql = f"SELECT {_ATOM} FROM atoms WHERE id IN ({_marks(part)})"  # noqa: S608 - own names
        found.update({row[0]: made(AtomRow, row) for row in db.execute(sql, part)})
    return found


def leading(db: sqlite3.Connection) -> list[LineRow]:
    """The lines that may be shown: of each section those of most weight, and all that a person wrote."""
    sql = f"SELECT {_LINE} FROM lines WHERE section = ? AND held = 0 ORDER BY weight DESC, last_us DESC, id LIMIT ?"  # noqa: S608 - own names
    rows = [row for section in SECTIONS for row in db.execute(sql, (section, MOST_CANDIDATES))]
    rows += db.execute(f"SELECT {_LINE} FROM lines WHERE held = ?", (WRITTEN,)).fetchall()  # noqa: S608 - own names
    return [made(LineRow, row) for row in rows]


def newest(db: sqlite3.Connection) -> int:
    """When the last thing that a line says was said."""
    return int(db.execute("SELECT coalesce(max(last_us), 0) FROM lines WHERE held = 0").fetchone()[0])


def candidates(db: sqlite3.Connection, lines: Sequence[LineRow]) -> list[Candidate]:
    """Lines with what they take and the slots that they fill; of a person's line the slot of the one it replaced."""
    replaced = [line.replaces for line in lines if line.replaces]
    before = {}
    for part in _parts(replaced):
        sql = f"SELECT id, atom FROM lines WHERE id IN ({_marks(part)})"  # noqa: S608 - own names
        before.update(dict(db.execute(sql, part).fetchall()))
    ids = [id for line in lines for id in (line.atom, line.other, before.get(line.replaces, "")) if id]
    atoms = atoms_of(db, dict.fromkeys(ids))
    found = []
    for line in lines:
        own = atoms.get(line.atom or before.get(line.replaces, ""))
        text = text_of(line, atoms.get)
        if text:
            found.append(Candidate(line, len(escaped(text)) + OVERHEAD_CHARS, own.slot if own is not None else ""))
    return found


def _parts(values: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return (tuple(values[start : start + _KEYS]) for start in range(0, len(values), _KEYS))


def _marks(part: Sequence[Row | str]) -> str:
    return ", ".join("?" * len(part))
