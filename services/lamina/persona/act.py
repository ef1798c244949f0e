"""Where a revision is made: the standing of the atoms is read, and the rules say what becomes of the lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from lamina.knowledge import LineChange
from lamina.persona import planning
from lamina.persona.decide import Ask
from lamina.persona.derive import changed
from lamina.persona.judge import Standing, Verdict, judge
from lamina.persona.select import select
from lamina.persona.tables import GONE, REMOVED, AtomRow, LineRow
from lamina.runtime import Wanted
from lamina.runtime.sibling import sibling
from lamina.runtime.spec import Made
from lamina.store import View

RULES: Final = "builtin-1"


async def act(wanted: Wanted, view: View) -> Made:
    """The revision over what `wanted` asks; `NotYet` while the atoms are behind."""
    ask: Ask = wanted.ask
    found = await sibling(view, "atoms", lambda db: planning.standings(db, ask), at_least=ask.seq)
    return Made("persona.revised", await view.read(lambda db: _in_one(db, ask, found)))


def _in_one(db: sqlite3.Connection, ask: Ask, found: Mapping[str, Standing]) -> dict[str, Any]:
    """What is read of this view is of one moment."""
    db.execute("BEGIN")
    try:
        return revision(db, ask, found)
    finally:
        db.execute("ROLLBACK")


def revision(db: sqlite3.Connection, ask: Ask, found: Mapping[str, Standing]) -> dict[str, Any]:
    """The data of the decision: what becomes of the lines of these atoms, and which lines are shown then."""
    lines = planning.lines_of(db, None if ask.whole else tuple(dict.fromkeys((*found, *ask.atoms))))
    atoms = planning.atoms_of(db, dict.fromkeys((*found, *lines)))
    operations = operations_of(found, lines, atoms, gone=[id for id in (*ask.atoms, *lines) if id not in found])
    after = _after(planning.leading(db), operations, atoms, lines)
    newest_us = max([planning.newest(db), *(line.last_us for line in after if line.atom)], default=0)
    chosen = select(planning.candidates(db, after), newest_us)
    return {"rules": RULES, "operations": operations, "shown": chosen.shown, "over": chosen.over}


def operations_of(
    found: Mapping[str, Standing],
    lines: Mapping[str, LineRow],
    atoms: Mapping[str, AtomRow],
    *,
    gone: Sequence[str] = (),
) -> tuple[LineChange, ...]:
    """What becomes of the line of each atom, by their ids. An atom that this view does not know yet waits."""
    made: dict[str, LineChange] = {}
    for id in sorted(dict.fromkeys((*found, *gone))):
        line, atom, standing = lines.get(id), atoms.get(id), found.get(id)
        verdict = judge(standing) if standing is not None else "gone"
        if isinstance(verdict, str):
            if line is not None and line.atom == id and line.held != GONE:
                made[id] = LineChange(kind="drop", atom=id, reason=verdict)
        elif atom is not None and standing is not None:
            change = _line(standing, verdict, is_new=line is None or line.held == GONE)
            if line is None or line.held == GONE or not _same(line, change):
                made[id] = change
    return tuple(_joined(made, found))


def _line(atom: Standing, verdict: Verdict, *, is_new: bool) -> LineChange:
    return LineChange(
        kind="add" if is_new else "replace",
        atom=atom.id,
        section=verdict.section,
        target="" if is_new else atom.id,
        reason=verdict.reason,
        weight=verdict.weight,
        first_us=atom.first_us,
        last_us=atom.last_us,
        until=atom.until,
        other=atom.by if atom.status == "contradicted" else "",
        project=atom.project if verdict.section == "project" else "",
    )


def _same(line: LineRow, change: LineChange) -> bool:
    fields = ("section", "weight", "first_us", "last_us", "until", "other", "project", "text")
    return all(getattr(line, field) == getattr(change, field) for field in fields)


def _joined(made: Mapping[str, LineChange], found: Mapping[str, Standing]) -> list[LineChange]:
    """A line that goes for another that comes is one change: the new one takes its place."""
    took: dict[str, LineChange] = {}
    for id, change in made.items():
        by = made.get(found[id].by) if change.kind == "drop" and id in found else None
        if by is not None and by.kind == "add" and by.atom not in {one.atom for one in took.values()}:
            took[id] = replace(by, kind="replace", target=id, reason=f"{found[id].status}: {by.reason}")
    instead = {change.atom: change for change in took.values()}
    return [instead.get(id, change) for id, change in made.items() if id not in took]


def _after(
    lines: Sequence[LineRow],
    operations: Sequence[LineChange],
    atoms: Mapping[str, AtomRow],
    known: Mapping[str, LineRow],
) -> list[LineRow]:
    """The lines that may be shown, once the operations are folded. `known` are those of atoms, by their ids."""
    now = {line.id: line for line in lines}
    for one in operations:
        for id in (one.atom, one.target):
            if id in atoms and (one.kind == "drop" or id != one.atom):
                now.pop(atoms[id].line, None)
        if one.kind != "drop":
            atom = atoms[one.atom]
            line = changed(known.get(one.atom) or now.get(atom.line) or LineRow(id=atom.line), one, decision="")
            if line.held != REMOVED:
                now[atom.line] = line
    return list(now.values())
