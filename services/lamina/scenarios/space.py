"""The episodes of a space as a decision sees them: the rows, and over them what the decision changes.

Runs on the view's thread. Every read is by a key or an index, so that it costs the same whatever there is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from lamina.scenarios import grouping
from lamina.scenarios.grouping import COMMON, DAY_US, GAP_US
from lamina.scenarios.tables import AtomRow, EpisodeRow, made, strings

_KEYS = 400
_PLACE = "FROM atoms WHERE session = ? AND project = ? AND episode <> ''"


class Space:
    """Reads rows once and shows its own changes over them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._atoms: dict[str, AtomRow] = {}
        self._stored: dict[str, EpisodeRow | None] = {}
        self.changed: dict[str, EpisodeRow] = {}
        self.gone: dict[str, EpisodeRow] = {}
        self._holding: dict[str, set[str]] = {}

    # atoms

    def atoms(self, ids: Sequence[str]) -> list[AtomRow]:
        """Those of these atoms that are there."""
        wanted = [id for id in ids if id not in self._atoms]
        for start in range(0, len(wanted), _KEYS):
            part = wanted[start : start + _KEYS]
            marks = ", ".join("?" * len(part))
            rows = self._db.execute(f"SELECT * FROM atoms WHERE id IN ({marks})", part)  # noqa: S608 - own marks
            self._atoms |= {row[0]: made(AtomRow, row) for row in rows}
        return [self._atoms[id] for id in ids if id in self._atoms]

    def span(self, session: str, project: str, without: Sequence[str]) -> tuple[int, int] | None:
        """The first and last moment of what is arranged of a session, but for some atoms."""
        others = f"AND id NOT IN ({', '.join('?' * len(without))})" if without else ""
        sql = f"SELECT min(time_us), max(time_us) {_PLACE} {others}"
        row = self._db.execute(sql, (session, project, *without)).fetchone()
        return (row[0], row[1]) if row[0] is not None else None

    def around(self, session: str, project: str, time_us: int) -> list[str]:
        """The episodes of a session with an atom within a pause's length of a moment."""
        sql = f"SELECT DISTINCT episode {_PLACE} AND time_us BETWEEN ? AND ?"
        return [row[0] for row in self._db.execute(sql, (session, project, time_us - GAP_US, time_us + GAP_US))]

    def all_of(self, session: str, project: str) -> list[str]:
        """The episodes of a session, which the caller knows to be one of a day."""
        return [row[0] for row in self._db.execute(f"SELECT DISTINCT episode {_PLACE}", (session, project))]

    # episodes

    def stored(self, id: str) -> EpisodeRow | None:
        """An episode as it was before this decision."""
        if id not in self._stored:
            row = self._db.execute("SELECT * FROM episodes WHERE id = ?", (id,)).fetchone()
            self._stored[id] = made(EpisodeRow, row) if row is not None else None
        return self._stored[id]

    def get(self, id: str) -> EpisodeRow | None:
        """An episode as it is now."""
        if id in self.gone:
            return None
        return self.changed.get(id) or self.stored(id)

    def put(self, episode: EpisodeRow) -> None:
        """An episode with its atoms as they are from now on."""
        self.gone.pop(episode.id, None)
        self.changed[episode.id] = episode
        for word in strings(episode.held):
            self._holding.setdefault(word, set()).add(episode.id)

    def drop(self, episode: EpisodeRow) -> None:
        self.gone[episode.id] = episode

    def before(self, word: str, one: EpisodeRow) -> list[EpisodeRow]:
        """The last episodes that hold a word and begin before another: no more than tell anything."""
        sql = (
            "SELECT episode FROM holds WHERE word = ? AND (first_us, tie) <= (?, ?) "
            "ORDER BY first_us DESC, tie DESC LIMIT ?"
        )
        return self._near(sql, word, one, lambda other: grouping.before(other, one))[-COMMON:]

    def after(self, word: str, one: EpisodeRow) -> list[EpisodeRow]:
        """The first episodes that hold a word and begin after another: those that may go on from it by the word."""
        sql = "SELECT episode FROM holds WHERE word = ? AND (first_us, tie) >= (?, ?) ORDER BY first_us, tie LIMIT ?"
        return self._near(sql, word, one, lambda other: grouping.before(one, other))[: COMMON + 1]

    def _near(self, sql: str, word: str, one: EpisodeRow, fits: Callable[[EpisodeRow], bool]) -> list[EpisodeRow]:
        """In the order in which they begin. As many more are read as may be changed or gone."""
        most = COMMON + 2 + len(self.gone) + len(self.changed)
        ids = [row[0] for row in self._db.execute(sql, (word, one.first_us, one.tie, most))]
        stored = [id for id in ids if id not in self.changed and id not in self.gone]
        found = [row for id in (*stored, *self._holding.get(word, ())) if (row := self.get(id)) is not None]
        return sorted((row for row in found if row.id != one.id and fits(row)), key=grouping.KEY)

    def neighbour(self, one: EpisodeRow, *, earlier: bool) -> EpisodeRow | None:
        """The episode of the same project that begins next before, or after, another."""
        sign, order = ("<=", "DESC") if earlier else (">=", "ASC")
        sql = (
            f"SELECT id FROM episodes WHERE project = ? AND project <> '' AND (first_us, tie) {sign} (?, ?) "  # noqa: S608
            f"ORDER BY first_us {order}, tie {order} LIMIT ?"
        )
        most = 2 + len(self.gone) + len(self.changed)
        ids = [row[0] for row in self._db.execute(sql, (one.project, one.first_us, one.tie, most))]
        changed = [other.id for other in self.changed.values() if one.project and other.project == one.project]
        rows = [
            row for id in dict.fromkeys((*ids, *changed)) if (row := self.get(id)) is not None and row.id != one.id
        ]
        near = [row for row in rows if grouping.before(row, one) == earlier]
        return (max if earlier else min)(near, key=grouping.KEY, default=None)

    def children(self, id: str) -> list[str]:
        """The episodes that go on from one, as it is now."""
        rows = self._db.execute("SELECT id FROM episodes WHERE parent = ?", (id,)).fetchall()
        known = [row[0] for row in rows if row[0] not in self.changed and row[0] not in self.gone]
        return known + [one.id for one in self.changed.values() if one.parent == id]

    def stored_children(self, id: str) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT id FROM episodes WHERE parent = ?", (id,))]

    # scenarios

    def root(self, scenario: str) -> str:
        """The episode that a scenario began with before this decision; empty where there is no such scenario."""
        row = self._db.execute("SELECT id FROM episodes WHERE scenario = ? AND parent = ''", (scenario,)).fetchone()
        return row[0] if row is not None else ""

    def size(self, scenario: str) -> int:
        row = self._db.execute("SELECT atoms FROM scenarios WHERE id = ?", (scenario,)).fetchone()
        return row[0] if row is not None else 0

    def has_scenario(self, scenario: str) -> bool:
        return self._db.execute("SELECT 1 FROM scenarios WHERE id = ?", (scenario,)).fetchone() is not None


def of_a_day(span: tuple[int, int] | None) -> bool:
    """Is a session over within a day, so that no pause divides it?"""
    return span is None or span[1] - span[0] <= DAY_US
