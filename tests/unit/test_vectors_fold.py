"""What the vectors service notes of each event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from lamina import events
from lamina.events import Blob, Data, MemoryForgotten, MemoryStated, SessionEnded, ToolReturned, TurnRecorded
from lamina.runtime import Drop, Key, Put, Recorded
from lamina.store.driver import Row
from lamina.vectors.fold import PASSAGE_CHARS, State, fold, needs, script

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


class Rows:
    def __init__(self, rows: Mapping[Key, Row] | None = None) -> None:
        self.rows = rows or {}

    def get(self, table: str, key: Row) -> Row | None:
        return self.rows.get((table, key))


def recorded(data: Data, *, id: str = "e1") -> Recorded:
    event = events.make(data, id=id, space="a", time=WHEN, session="s")
    return Recorded(seq=7, at_us=0, raw=b"", event=event, data=data)


def texts(data: Data) -> list[str]:
    _, changes = fold(State(), recorded(data), Rows())
    return [change.row[4] for change in changes if isinstance(change, Put)]


def test_who_spoke_and_the_beginning_is_what_is_embedded() -> None:
    assert texts(TurnRecorded(role="user", text="hello")) == ["user: hello"]
    assert texts(TurnRecorded(role="user", text="hello", name="민수")) == ["민수: hello"]
    assert texts(MemoryStated(text="I like tea")) == ["user: I like tea"]
    assert texts(ToolReturned(tool="ls", arguments={"path": "."}, result="a.py")) == ['ls: {"path":"."}\na.py']
    assert [len(text) for text in texts(TurnRecorded(role="user", text="가" * 10_000))] == [PASSAGE_CHARS]
    assert texts(SessionEnded()) == []


def test_a_text_in_a_blob_is_left_to_keywords() -> None:
    blob = Blob("f" * 64, 10)

    assert texts(TurnRecorded(role="user", text=blob)) == []
    assert texts(ToolReturned(tool="cat", arguments={}, result=blob)) == []
    assert texts(MemoryStated(text=blob)) == []


def test_the_first_of_an_id_counts() -> None:
    one = recorded(TurnRecorded(role="user", text="hello"))
    _, changes = fold(State(), one, Rows({("texts", ("e1",)): ("e1", 3, "h", "other", "user: hello")}))

    assert needs(one) == (("texts", ("e1",)),)
    assert changes == ()


def test_what_is_forgotten_takes_its_vector_along() -> None:
    one = recorded(MemoryForgotten(ids=("e1", "e2")), id="f")
    _, changes = fold(State(), one, Rows({("texts", ("e1",)): ("e1", 3, "h", "other", "user: hello")}))

    assert needs(one) == (("texts", ("e1",)), ("texts", ("e2",)))
    assert changes == [Drop("texts", ("e1",)), Put("gone", ("h",))]


def test_the_script_tells_four_languages_apart() -> None:
    assert [script(text) for text in ("hello", "안녕 hello", "日本に行く", "去日本", "", "привет")] == [
        "other", "hangul", "kana", "han", "other", "other",
    ]  # fmt: skip
