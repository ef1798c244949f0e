"""Where scenarios are arranged: how atoms stand is read from their own view, what goes together from this one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.knowledge import Standing
from lamina.runtime import Wanted
from lamina.runtime.sibling import sibling
from lamina.runtime.spec import Made
from lamina.scenarios.arrange import arrange
from lamina.scenarios.grouping import RULES
from lamina.scenarios.tables import FORGOTTEN, NEW, OUT, AtomRow, made, strings
from lamina.store import View

MOST_ATOMS = 600
"""So many new atoms are arranged by one decision; the event of it is bounded, and the rest is due at once."""
MOST_EVENTS = 64
_ORPHANS = "SELECT id FROM episodes WHERE parent <> '' AND parent NOT IN (SELECT id FROM episodes) ORDER BY id"
_KEYS = 400


class Asked(Struct, frozen=True):
    """What an arrangement is asked: the events it looks at (ids), up to which position, which episodes lost atoms."""

    events: tuple[str, ...]
    seq: int
    episodes: tuple[str, ...]


def plan(db: sqlite3.Connection, wanted: Wanted, now_us: int, attempt: int) -> Wanted | None:
    """The oldest events that wait, as many as one decision takes."""
    rows = db.execute("SELECT id, seq, episodes, kind FROM pending ORDER BY seq LIMIT ?", (MOST_EVENTS,)).fetchall()
    taken: list[tuple[str, int, str, str]] = []
    atoms = 0
    for row in rows:
        atoms += _number_made(db, row[0])
        if taken and atoms > MOST_ATOMS:
            break
        taken.append(row)
    if not taken:
        return None
    ids = tuple(row[0] for row in taken)
    episodes = dict.fromkeys(id for row in taken for id in strings(row[2]))
    if any(row[3] == FORGOTTEN for row in taken):
        episodes |= dict.fromkeys(row[0] for row in db.execute(_ORPHANS))
    return replace(wanted, inputs=ids, ask=Asked(ids, taken[-1][1], tuple(episodes)))


def _number_made(db: sqlite3.Connection, event: str) -> int:
    row = db.execute("SELECT atoms FROM made WHERE source = ?", (event,)).fetchone()
    return len(strings(row[0])) if row is not None else 0


async def act(wanted: Wanted, view: View) -> Made:
    """The decision over `wanted.inputs`; `NotYet` while the view of atoms is behind them."""
    ask: Asked = wanted.ask
    started = time.monotonic()
    own = await view.read(lambda db: made_by(db, ask.events))
    touched = await sibling(view, "atoms", lambda db: _touched(db, ask.events), at_least=ask.seq)
    known = await view.read(lambda db: known_atoms(db, {*own, *touched}))
    found = await sibling(view, "atoms", lambda db: _standings(db, known), at_least=ask.seq)
    data: dict[str, Any] = await view.read(lambda db: decision(db, ask, known, found))
    return Made("scenarios.arranged", {**data, "duration_ms": round((time.monotonic() - started) * 1000)})


def decision(
    db: sqlite3.Connection, ask: Asked, known: Mapping[str, AtomRow], found: Sequence[Standing]
) -> dict[str, Any]:
    """The data of a decision, by how some known atoms stand: a function of the rows."""
    changed = [one for one in found if _differs(one, known[one.atom])]
    new = [one.atom for one in changed if one.status not in OUT and not known[one.atom].episode]
    without = [one.atom for one in changed if one.status in OUT and known[one.atom].episode]
    result = arrange(db, new, without=without, touched=ask.episodes)
    return {
        "rules": RULES,
        "standings": tuple(changed),
        "episodes": result.episodes,
        "gone": result.gone,
        "operations": result.operations,
    }


def made_by(db: sqlite3.Connection, events: Sequence[str]) -> list[str]:
    """The atoms of these events that nothing is known of yet, as this view has them."""
    found: list[str] = []
    for row in _by_key(db, "SELECT atoms FROM made WHERE source IN ({})", events):
        found += strings(row[0])
    return found


def _touched(db: sqlite3.Connection, events: Sequence[str]) -> list[str]:
    """The atoms that these decisions, or those they undid, made or changed, as the view of atoms has them."""
    found: list[str] = []
    undid = "SELECT id, atoms FROM decisions WHERE id IN ({0}) OR undone IN ({0})"
    for start in range(0, len(events), _KEYS):
        part = events[start : start + _KEYS]
        for row in db.execute(undid.format(", ".join("?" * len(part))), (*part, *part)):
            found += strings(row[1])
    more = [row[0] for row in _by_key(db, "SELECT by FROM atoms WHERE by <> '' AND id IN ({})", found)]
    return list(dict.fromkeys((*found, *more)))


def known_atoms(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, AtomRow]:
    """These atoms, and those that stand as they do because of one of them."""
    wanted = sorted(ids)
    rows = [
        *_by_key(db, "SELECT * FROM atoms WHERE id IN ({})", wanted),
        *_by_key(db, "SELECT * FROM atoms WHERE by <> '' AND by IN ({})", wanted),
    ]
    return {row[0]: made(AtomRow, row) for row in rows}


def _standings(db: sqlite3.Connection, atoms: dict[str, AtomRow]) -> list[Standing]:
    sql = "SELECT id, status, by, until, count FROM atoms WHERE id IN ({})"
    there = {
        row[0]: Standing(atom=row[0], status=row[1], by=row[2], until=row[3], count=row[4])
        for row in _by_key(db, sql, sorted(atoms))
    }
    return [there.get(id) or Standing(atom=id, status="missing") for id in sorted(atoms, key=lambda id: atoms[id].n)]


def _differs(one: Standing, row: AtomRow) -> bool:
    seen = Standing(atom=row.id, status=row.status, by=row.by, until=row.until, count=row.count)
    return row.state == NEW or one != seen


def _by_key(db: sqlite3.Connection, sql: str, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(keys), _KEYS):
        part = keys[start : start + _KEYS]
        found += db.execute(sql.format(", ".join("?" * len(part))), part).fetchall()
    return found
