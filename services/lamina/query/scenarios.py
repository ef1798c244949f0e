"""The l2 reads: scenarios as they stand, what they are made of, and which of them a memory belongs to."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence

import msgspec

from lamina.errors import Invalid
from lamina.ids import token
from lamina.knowledge import COLD_US, heat
from lamina.records import Link
from lamina.requests import ScenarioInfo, Scenarios, ScenariosAre
from lamina.times import from_micros, micros, parse, text_of

MAX_PAGE = 1_000
MOST_SHOWN = 2_000
"""Of the scenarios, those of the latest are sorted by heat: what is older has hardly any."""
MOST_LINKS = 50
_COLUMNS = "id, slug, title, summary, status, project, atoms, mentions, sessions, first_us, last_us, merged"
_MEMBERS = (
    "SELECT a.id FROM episodes e JOIN atoms a ON a.episode = e.id WHERE e.scenario = ? ORDER BY a.time_us, a.id"
)
_OF_ATOM = "SELECT e.scenario FROM atoms a JOIN episodes e ON e.id = a.episode WHERE a.id = ?"
_NAME = re.compile(r"[0-9a-z_-]{1,128}")


def scenarios(db: sqlite3.Connection, request: Scenarios) -> ScenariosAre:
    """A page, the hottest first; or one by its name, with the text of its file."""
    now_us = _now_us(request.now)
    if request.name:
        row = _found(db, request.name)
        return ScenariosAre(scenarios=(_whole(db, row, now_us),) if row is not None else (), more=False)
    limit = max(1, min(request.limit, MAX_PAGE))
    sql = f"SELECT {_COLUMNS} FROM scenarios WHERE status <> 'merged' ORDER BY last_us DESC LIMIT ?"  # noqa: S608 - own names
    found = [_info(row, now_us) for row in db.execute(sql, (MOST_SHOWN,))]
    found.sort(key=lambda one: (-one.heat, one.slug))
    return ScenariosAre(scenarios=tuple(found[:limit]), more=len(found) > limit)


def info(db: sqlite3.Connection, id: str) -> ScenarioInfo | None:
    """The scenario of this id, without its text; none where it was merged."""
    sql = f"SELECT {_COLUMNS} FROM scenarios WHERE id = ? AND status <> 'merged'"  # noqa: S608 - own names
    row = db.execute(sql, (id,)).fetchone()
    return _info(row, 0) if row is not None else None


def link(db: sqlite3.Connection, name: str) -> Link | None:
    """A scenario as the head of a chain: its sources are the ids of its atoms."""
    row = _found(db, name)
    if row is None:
        return None
    one = _info(row, 0)
    return Link(
        layer="l2",
        id=one.id,
        text="\n".join(part for part in (one.title, one.summary) if part),
        time=one.last,
        sources=members(db, one.id),
        note=f"merged into {one.merged}" if one.merged else "",
    )


def members(db: sqlite3.Connection, scenario: str) -> tuple[str, ...]:
    """The atoms of a scenario, in the order of time."""
    return tuple(row[0] for row in db.execute(_MEMBERS, (scenario,)))


def made_of(db: sqlite3.Connection, atoms: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """To which scenario some atoms belong."""
    found: dict[str, tuple[str, ...]] = {}
    for id in atoms:
        row = db.execute(_OF_ATOM, (id,)).fetchone()
        if row is not None and row[0]:
            found[id] = (row[0],)
    return found


def _found(db: sqlite3.Connection, name: str) -> tuple[object, ...] | None:
    """The scenario of this slug or id, or whose slug or id alone begins so; what took over one that was merged."""
    if not _NAME.fullmatch(name):
        return None
    select = f"SELECT {_COLUMNS} FROM scenarios"  # noqa: S608 - own names
    exact = db.execute(
        f"{select} WHERE id = ? OR slug = ? ORDER BY status = 'merged' LIMIT 1", (name, name)
    ).fetchone()
    if exact is not None:
        return tuple(exact)
    end = name + "\x7f"
    begins = db.execute(
        f"{select} WHERE status <> 'merged' AND (id BETWEEN ? AND ? OR slug BETWEEN ? AND ?) LIMIT 2",
        (name, end, name, end),
    ).fetchall()
    return tuple(begins[0]) if len(begins) == 1 else None


def _whole(db: sqlite3.Connection, row: tuple[object, ...], now_us: int) -> ScenarioInfo:
    one = _info(row, now_us)
    text = db.execute("SELECT text FROM files WHERE path = ?", (one.path,)).fetchone()
    return msgspec.structs.replace(
        one, text=text[0] if text is not None else "", atoms=members(db, one.id)[:MAX_PAGE]
    )


def _info(row: tuple[object, ...], now_us: int) -> ScenarioInfo:
    id, slug, title, summary, status, project, facts, mentions, sessions, first_us, last_us, merged = map(str, row)
    last = int(last_us)
    if status == "open" and now_us - last > COLD_US:
        status = "dormant"
    return ScenarioInfo(
        id=id,
        slug=slug,
        title=title,
        summary=summary,
        status=status,
        heat=heat(mentions=int(mentions), sessions=int(sessions), last_us=last, now_us=now_us),
        project=project,
        facts=int(facts),
        mentions=int(mentions),
        sessions=int(sessions),
        first=text_of(from_micros(int(first_us))),
        last=text_of(from_micros(last)),
        path=f"scenarios/{token(slug)}.md" if slug and status != "merged" else "",
        merged=merged,
    )


def _now_us(now: str) -> int:
    if not now:
        return time.time_ns() // 1000
    try:
        return micros(parse(now))
    except Invalid as error:
        raise Invalid(f"now: {error}") from error
