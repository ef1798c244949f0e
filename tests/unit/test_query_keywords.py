"""The keyword leg on a small journal of its own: order in young spaces, filters, filling, hostile queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lamina import events, times
from lamina.journal.fold import TABLES, State, fold, needs
from lamina.query.keywords import Found, found, search
from lamina.records import Where
from lamina.runtime import Recorded
from lamina.runtime.apply import Overlay
from lamina.store.driver import driver

START = times.parse("2026-11-02T10:00:00+09:00")
CHAT = (
    ("kickoff", "user", "We keep the orders in PostgreSQL 16, and the nightly export goes to S3."),
    ("kickoff", "assistant", "Noted. Should the export run on Sundays too?"),
    ("kickoff", "user", "No, never on Sundays: the till closes its books then."),
    ("서울", "user", "데이터베이스 비밀번호는 매달 첫째 주에 바꿉니다."),
)


class Journal:
    """A journal's rows in memory, written by its own fold."""

    def __init__(self) -> None:
        self.db: sqlite3.Connection = driver.connect(":memory:", isolation_level=None)
        self._tables = {table.name: table for table in TABLES}
        self._state = State()
        self._seq = 0
        for table in TABLES:
            for statement in table.ddl.split(";"):
                self.db.execute(statement)

    def say(self, session: str, role: str, text: str, when: datetime | None = None) -> None:
        self._seq += 1
        data = events.TurnRecorded(role=role, text=text, turn_id=f"t{self._seq}")
        when = when or START + timedelta(minutes=self._seq)
        event = events.make(data, id=f"e{self._seq}", space="shop", time=when, session=session)
        one = Recorded(seq=self._seq, at_us=self._seq, raw=events.encode(event), event=event, data=data)
        overlay = Overlay(self.db, self._tables)
        for table, key in needs(one):
            overlay.load(table, key)
        self._state, changes = fold(self._state, one, overlay)
        for change in changes:
            if type(change).__name__ in ("Put", "Add", "Drop"):
                overlay.apply(change)  # type: ignore[arg-type]
        overlay.write()

    def found(self, query: str, where: Where | None = None, limit: int = 8) -> list[str]:
        return [one.turn.turn_id for one in self.search(query, where, limit)]

    def search(self, query: str, where: Where | None = None, limit: int = 8) -> list[Found]:
        return found(self.db, search(self.db, query, where or Where(), limit).ranked[:limit])

    def at(self, now: datetime, query: str, where: Where | None = None, limit: int = 8) -> list[str]:
        ranked = search(self.db, query, where or Where(), limit, now).ranked
        return [one.turn.turn_id for one in found(self.db, ranked[:limit])]


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal()
    for turn in CHAT:
        made.say(*turn)
    yield made
    made.db.close()


def test_in_a_space_of_four_turns_words_that_most_of_them_hold_still_order_the_answer(journal: Journal) -> None:
    scores = [one.score for one in journal.search("does the export run on Sundays?")]

    assert journal.found("does the export run on Sundays?")[:2] == ["t3", "t2"]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0.1


def test_the_parts_add_up_to_the_score(journal: Journal) -> None:
    for one in journal.search("export Sundays"):
        assert sum(one.parts.values()) == pytest.approx(one.score)


@pytest.mark.parametrize("query", ["데이터베이스", "비밀번호를", "데이터", "데이터베이스는 언제 password"])
def test_korean_is_found_with_and_without_its_particles(journal: Journal, query: str) -> None:
    assert journal.found(query)[0] == "t4"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Where(sessions=("서울",)), set()),
        (Where(sessions=("kickoff",)), {"t1", "t2", "t3"}),
        (Where(types=("memory.stated",)), set()),
        (Where(since=START + timedelta(minutes=2)), {"t2", "t3"}),
        (Where(until=START + timedelta(minutes=2)), {"t1", "t2"}),
        (Where(agents=("nobody",)), set()),
    ],
)
def test_filters_come_before_ranking_and_filling(journal: Journal, where: Where, expected: set[str]) -> None:
    assert set(journal.found("export Sundays", where)) == expected


@pytest.mark.parametrize("query", ["", "   ", "?!", "\x00", "🙂", '"', "a AND", "NEAR(", "own:x", "-x", "*", "of"])
def test_no_query_is_syntax(journal: Journal, query: str) -> None:
    assert isinstance(journal.found(query), list)


def test_a_very_long_query_is_answered(journal: Journal) -> None:
    assert "t1" in journal.found("PostgreSQL " + "x1 y2 z3 " * 30_000)


def test_a_time_that_is_asked_for_decides_between_turns_of_the_same_words_and_finds_those_of_none() -> None:
    journal = Journal()
    first = datetime(2026, 11, 2, 12, tzinfo=UTC)
    for n in range(4):
        journal.say(f"s{n}", "user", f"Walked the dog along the canal, lap {n}.", first + timedelta(days=7 * n))
    journal.say("s9", "user", "Rain all day.", first + timedelta(days=8))
    now = datetime(2026, 11, 18, 9, tzinfo=UTC)  # the week before is that of the 9th: turn 2 of the dog, and the rain

    try:
        assert journal.at(now, "where did I walk the dog last week?")[0] == "t2"
        assert journal.at(now, "지난주에 뭐 했지?") == ["t2", "t5"]  # nothing but the time speaks for them
        assert journal.at(now, "what happened last week?", Where(sessions=("s9",))) == ["t5"]
        assert journal.at(now, "where did I walk the dog?") == [
            one.turn.turn_id for one in journal.search("where did I walk the dog?")
        ]
    finally:
        journal.db.close()
