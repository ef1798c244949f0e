"""The inputs of the next decision, read from the rows of the view: due windows, atoms to be reconciled."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.atoms.decide import Extraction, Reconciliation, Window
from lamina.atoms.derive import EXTRACT
from lamina.atoms.tables import OPEN, AtomRow, TurnRow, made
from lamina.atoms.turns import Turn
from lamina.atoms.windows import GAP_US
from lamina.runtime import Due, Wanted
from lamina.store import Row
from lamina.text import match

CONTEXT_TURNS = 4
CONTEXT_CHARS = 600
MOST_RECONCILED = 40
MOST_KNOWN = 32
"""Of the atoms that fill a slot of a subject, the newest."""
MOST_SAME = 4
"""Of those that say the same words and stand for themselves: in each project one at most, as a rule."""
_SAME = "SELECT * FROM atoms WHERE same = ? AND removed_by = '' AND status <> 'repeated' ORDER BY n DESC LIMIT ?"
_SLOT = (
    "SELECT * FROM atoms WHERE slot = ? AND slot <> '' AND subject = ? AND removed_by = '' AND status <> 'repeated' "
    "ORDER BY n DESC LIMIT ?"
)
_ALIKE = (
    "SELECT a.* FROM atoms_fts f JOIN atoms a ON a.n = f.rowid WHERE atoms_fts MATCH ? AND a.status = 'active' "
    "ORDER BY bm25(atoms_fts) LIMIT ?"
)
MOST_ALIKE = 6
"""Of the atoms of like words, for each new one."""
_KEYS = 200


class Planner(Struct, frozen=True):
    """How much one extraction takes: `windows` at most, and no further window once it has `turns`.

    `for_model`: what was spent today is counted, and for a reconciliation atoms of like words are looked up.
    """

    windows: int
    turns: int
    for_model: bool = False

    def __call__(self, db: sqlite3.Connection, wanted: Wanted, now_us: int, attempt: int) -> Wanted | Due | None:
        """`wanted` with its inputs and texts; what is not due after all is None, or Due. After a failure one window
        is tried by itself, so that the one that cannot be taken does not hold up others."""
        if wanted.step != EXTRACT:
            return _reconciliation(db, wanted, _spent(db, now_us) if self.for_model else None)
        numbers = self._due(db, now_us, 1 if attempt else self.windows)
        if not numbers:
            first = db.execute("SELECT min(at_us) FROM windows WHERE state = 0").fetchone()[0]
            return Due(first + GAP_US) if first is not None else None
        windows = tuple(window for number in numbers if (window := _window(db, number)).turns)
        inputs = tuple(turn.id for window in windows for turn in window.turns)
        return replace(wanted, inputs=inputs, ask=Extraction(windows, _spent(db, now_us) if self.for_model else 0))

    def _due(self, db: sqlite3.Connection, now_us: int, most: int) -> list[int]:
        """The closed windows, those of stated memories first; where there are none, those idle for long."""
        rows = db.execute(
            "SELECT window, events FROM windows WHERE state > 0 ORDER BY state DESC, window LIMIT ?", (most,)
        ).fetchall()
        if not rows:
            rows = db.execute(
                "SELECT window, events FROM windows WHERE state = ? AND at_us <= ? ORDER BY at_us, window LIMIT ?",
                (OPEN, now_us - GAP_US, most),
            ).fetchall()
        taken: list[int] = []
        left = self.turns
        for number, events in rows:
            if taken and events > left:
                break
            taken.append(number)
            left -= events
        return taken


def _spent(db: sqlite3.Connection, now_us: int) -> int:
    day_us = 86_400_000_000
    row = db.execute("SELECT coalesce(sum(tokens), 0) FROM decisions WHERE at_us >= ?", (now_us - now_us % day_us,))
    return int(row.fetchone()[0])


def _window(db: sqlite3.Connection, number: int) -> Window:
    turns = [
        made(TurnRow, row)
        for row in db.execute("SELECT * FROM turns WHERE window = ? AND outcome = 0 ORDER BY seq", (number,))
    ]
    if not turns:
        return Window(())
    before = db.execute(
        "SELECT * FROM turns WHERE session = ? AND seq < ? AND kind = 'turn' ORDER BY seq DESC LIMIT ?",
        (turns[0].session, turns[0].seq, CONTEXT_TURNS),
    )
    context = [_shown(made(TurnRow, row), CONTEXT_CHARS) for row in before]
    return Window(tuple(_shown(turn) for turn in turns), tuple(reversed(context)))


def _shown(turn: TurnRow, most: int | None = None) -> Turn:
    return Turn(
        id=turn.id,
        text=turn.text[:most],
        time=turn.time,
        kind="tool" if turn.kind == "tool" else "stated" if turn.kind == "stated" else "turn",
        role=turn.role,
        name=turn.name,
        session=turn.session,
        project=turn.project,
        agent=turn.agent,
    )


def _reconciliation(db: sqlite3.Connection, wanted: Wanted, spent_today: int | None) -> Wanted | None:
    """`wanted` with its atoms; where `spent_today` is given a model may be asked, and is given some alike."""
    rows = db.execute("SELECT decision FROM unreconciled ORDER BY seq LIMIT ?", (MOST_RECONCILED,)).fetchall()
    decisions = tuple(row[0] for row in rows)
    if not decisions:
        return None
    new = _atoms(db, "decision", decisions)
    known: dict[str, AtomRow] = {}
    for same in dict.fromkeys(atom.same for atom in new):
        _take(known, db.execute(_SAME, (same, MOST_SAME)))
    for slot, subject in dict.fromkeys((atom.slot, atom.subject) for atom in new if atom.slot):
        _take(known, db.execute(_SLOT, (slot, subject, MOST_KNOWN)))
    for one in new:
        known.pop(one.id, None)
    ask = Reconciliation(tuple(new), tuple(known.values()))
    if spent_today is not None:
        ask = replace(ask, alike=tuple(_alike(db, new)), spent_today=spent_today)
    return replace(wanted, inputs=decisions, ask=ask)


def _alike(db: sqlite3.Connection, new: Sequence[AtomRow]) -> Iterable[AtomRow]:
    """The atoms of the same speakers' words that are nearest to the new ones, by the words of the index."""
    found: dict[str, AtomRow] = {}
    fresh = {atom.id for atom in new}
    for atom in new:
        expression = match(atom.text)
        if expression is not None:
            _take(found, db.execute(_ALIKE, (expression, MOST_ALIKE)))
    return [atom for atom in found.values() if atom.id not in fresh]


def _take(known: dict[str, AtomRow], rows: Iterable[Row]) -> None:
    for row in rows:
        if row[0] not in known:
            known[row[0]] = made(AtomRow, row)


def _atoms(db: sqlite3.Connection, column: str, values: Sequence[str]) -> list[AtomRow]:
    found: list[AtomRow] = []
    for start in range(0, len(values), _KEYS):
        part = values[start : start + _KEYS]
        sql = f"SELECT * FROM atoms WHERE {column} IN ({', '.join('?' * len(part))}) AND removed_by = ''"  # noqa: S608
        found += [made(AtomRow, row) for row in db.execute(sql, part)]
    return sorted(found, key=lambda atom: atom.n)
