"""Which texts of a view are looked at next: the newest that were not, then older ones."""

from __future__ import annotations

from typing import Any

from lamina.runtime.apply import erased_seq

PAGE = 64
NOTHING = (0, "")
TABLES = ("texts", "derived")
"""Of the view: what was said, and what was made of it. Columns seq, id, hash and text."""


class Work:
    """What is known of one space: every text between the places (seq, id) `below` and `top` has its vector or
    stands in `todo`."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.top = NOTHING
        self.below = NOTHING
        self.todo: list[tuple[str, str]] = []
        self.left = 1
        self.gone = 0
        self.erased_seq = 0
        """The last tombstone that was folded when the texts in `todo` were read."""


def page(db: Any, work: Work) -> tuple[list[tuple[str, str]], int, list[str]]:
    """The next texts of a space, newest first; how many there are; hashes of forgotten ones."""
    work.erased_seq = erased_seq(db)
    rows = _some(db, ">", work.top)
    if rows:
        if len(rows) == PAGE or work.below == NOTHING:
            work.below = rows[-1][:2]
        work.top = rows[0][:2]
    else:
        rows = _some(db, "<", work.below)
        if rows:
            work.below = rows[-1][:2]
    count = db.execute("SELECT (SELECT count(*) FROM texts) + (SELECT count(*) FROM derived)").fetchone()[0]
    forgotten = db.execute("SELECT count(*) FROM gone").fetchone()[0]
    gone: list[str] = []
    if forgotten != work.gone:
        work.gone = forgotten
        used = "SELECT 1 FROM {0} WHERE {0}.hash = gone.hash"
        sql = " ".join(f"AND NOT EXISTS ({used.format(table)})" for table in TABLES)
        gone = [row[0] for row in db.execute(f"SELECT hash FROM gone WHERE 1 {sql}")]  # noqa: S608 - own names
    return [row[2:] for row in rows], count, gone


def _some(db: Any, side: str, place: tuple[int, str]) -> list[tuple[int, str, str, str]]:
    """A page of (seq, id, hash, text) on one side of a place, from the newest."""
    parts = " UNION ALL ".join(
        f"SELECT seq, id, hash, text FROM {table} WHERE (seq, id) {side} (:seq, :id)"  # noqa: S608 - own names
        for table in TABLES
    )
    sql = f"{parts} ORDER BY seq DESC, id DESC LIMIT {PAGE}"
    rows: list[tuple[int, str, str, str]] = db.execute(sql, {"seq": place[0], "id": place[1]}).fetchall()
    return rows
