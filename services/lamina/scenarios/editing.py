"""What a person had before them when they edited the file of a scenario or of a skill."""

from __future__ import annotations

import sqlite3

from lamina.runtime import Base, Editing
from lamina.runtime.sealing import seal_of, sealed


def base(db: sqlite3.Connection, path: str, seal: str) -> Base | None:
    """The file as the view has it; None for one that is no scenario's and no skill's."""
    row = db.execute("SELECT text FROM files WHERE path = ?", (path,)).fetchone()
    if row is None:
        return None
    edits = db.execute("SELECT count(*) FROM edited").fetchone()[0]
    return Base(row[0], edits, not seal or seal_of(sealed(row[0])) == seal)


EDITING = Editing("scenario.edited", ("scenarios/*.md", "skills/*/SKILL.md"), base)
