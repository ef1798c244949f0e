"""The reads of skills: the procedures that worked, as the view of scenarios has them. On a view's thread."""

from __future__ import annotations

import sqlite3

from lamina.ids import token
from lamina.skills import SkillInfo, Skills, SkillsAre
from lamina.times import from_micros, text_of

MAX_PAGE = 1_000
_COLUMNS = "slug, title, description, steps, project, last_us, id"
_HAVE = "FROM scenarios WHERE steps > 0 AND status <> 'merged'"


def skills(db: sqlite3.Connection, request: Skills) -> SkillsAre:
    """A page, the last used first; or one by its name, with the text of its file."""
    if request.name:
        sql = f"SELECT {_COLUMNS} {_HAVE} AND slug = ?"
        row = db.execute(sql, (request.name,)).fetchone()
        return SkillsAre(skills=(_info(row, _text(db, row[0])),) if row is not None else (), more=False)
    limit = max(1, min(request.limit, MAX_PAGE))
    sql = f"SELECT {_COLUMNS} {_HAVE} ORDER BY last_us DESC, slug LIMIT ?"
    rows = db.execute(sql, (limit + 1,)).fetchall()
    return SkillsAre(skills=tuple(_info(row) for row in rows[:limit]), more=len(rows) > limit)


def _info(row: tuple[str, str, str, int, str, int, str], text: str = "") -> SkillInfo:
    slug, title, description, steps, project, last_us, scenario = row
    return SkillInfo(
        name=slug,
        title=title,
        description=description,
        steps=steps,
        project=project,
        last=text_of(from_micros(last_us)),
        path=_path(slug),
        scenario=scenario,
        text=text,
    )


def _text(db: sqlite3.Connection, slug: str) -> str:
    row = db.execute("SELECT text FROM files WHERE path = ?", (_path(slug),)).fetchone()
    return str(row[0]) if row is not None else ""


def _path(slug: str) -> str:
    return f"skills/{token(slug)}/SKILL.md"
