"""What a person had before them when they edited `persona.md`: the revision with its seal."""

from __future__ import annotations

import sqlite3

import msgspec

from lamina.persona.planning import atoms_of, lines_by_id
from lamina.persona.select import STANDING_CHARS
from lamina.persona.tables import places
from lamina.persona.work import State, text_of
from lamina.runtime import Base, Editing
from lamina.runtime.apply import read_meta
from lamina.text.persona import FILE, Shown, body

_REVISION = "SELECT shown, over FROM revisions WHERE {} ORDER BY n DESC LIMIT 1"


def base(db: sqlite3.Connection, path: str, seal: str) -> Base | None:
    """The file of that revision, without what has been forgotten since; the last one where none has this seal."""
    row = db.execute(_REVISION.format("seal = ?"), (seal,)).fetchone() if seal else None
    exact = row is not None
    row = row or db.execute(_REVISION.format("1")).fetchone()
    if path != FILE or row is None:
        return None
    lines = lines_by_id(db, [id for _, id in places(row[0])])
    atoms = atoms_of(db, dict.fromkeys(one for line in lines.values() for one in (line.atom, line.other) if one))

    def shown(id: str) -> Shown | None:
        line = lines.get(id)
        text = text_of(line, atoms.get) if line is not None else ""
        return Shown(id=id, section=line.section, text=text, project=line.project) if line and text else None

    text = body(places(row[0]), shown, over=row[1], standing_chars=STANDING_CHARS)
    state = msgspec.json.decode(read_meta(db, "state", b"{}"), type=State)
    return Base(text, state.edits, exact)


EDITING = Editing("persona.edited", (FILE,), base)
