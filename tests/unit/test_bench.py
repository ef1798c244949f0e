"""The verb `bench`: questions made of a log or read from a file, and what their answers are worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.bench.measure import Asked, place, summed
from lamina.bench.questions import Question, half, of_file, of_turns
from lamina.errors import Invalid
from lamina.records import Hits, Item
from lamina.requests import Turn

LONG = "We keep the orders in PostgreSQL and the export goes out at two"


def turn(n: int, said: str, role: str = "user") -> Turn:
    rest = {"session": "s", "name": "", "agent": "", "project": "", "time": "2026-11-30T09:00:00Z"}
    return Turn(seq=n, id=f"e{n}", type="turn.recorded", role=role, turn_id=f"t{n}", text=said, **rest)


def item(id: str, *sources: str, turn_ids: tuple[str, ...] = ()) -> Item:
    return Item(
        layer="l0",
        id=id,
        text="x",
        score=1.0,
        parts={},
        time="",
        space="s",
        session="s",
        sources=sources,
        turn_ids=turn_ids,
    )


def test_a_question_is_every_other_word_or_the_middle_of_what_has_no_spaces() -> None:
    assert half(LONG) == "We the in and export out two"
    assert half("我们的书目每天凌晨三点更新一次格式是JSON不再提供") == "天凌晨三点更新一次格式是JS"
    assert [half(short) for short in ("", "yes, thank you", "好的", "see https://example.org")] == [""] * 4


def test_questions_are_spread_over_the_log_and_leave_out_what_cannot_be_told_apart() -> None:
    log = [turn(n, f"{LONG} on day {n}") for n in range(1, 101)]
    log += [
        turn(101, "twice " + LONG),
        turn(102, "twice " + LONG),
        turn(103, LONG, role="assistant"),
        turn(104, "no"),
    ]

    questions = of_turns(log, 4)

    assert [one.evidence for one in questions] == [("e1",), ("e26",), ("e51",), ("e76",)]
    assert of_turns(log, 4) == questions
    assert len(of_turns(log, 1_000)) == 100
    assert of_turns([], 4) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"question": "where?", "evidence": ["t1"]}\n{"question": 5}', r"mine\.jsonl:2: "),
        ('{"question": "where?"}', r":1: .*evidence"),
        ('{"question": " ", "evidence": ["t1"]}', ":1: a question needs words"),
        ('{"question": "where?", "evidence": []}', ":1: a question needs words"),
        ("\n\n", "holds 0 questions"),
        ("\x00\x01", ":1: "),
    ],
)
def test_a_file_that_holds_no_questions_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(text)

    with pytest.raises(Invalid, match=says):
        of_file(path)


def test_a_file_of_questions(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"question": "where?", "evidence": ["t1", "t2"]}\n\n{"question": "언제?", "evidence": ["k1"]}\n')

    assert of_file(path) == [Question("where?", ("t1", "t2")), Question("언제?", ("k1",))]
    with pytest.raises(Invalid, match="cannot be read"):
        of_file(tmp_path / "nothing")


def test_evidence_counts_by_any_of_its_ids() -> None:
    hits = Hits(status="found", items=(item("a"), item("b", "e7"), item("c", "e8", turn_ids=("t8",))))

    assert [place(hits, one) for one in (["a"], ["e7"], ["t8", "nothing"], ["x"], [])] == [1, 2, 3, 0, 0]


def test_figures_of_four_answers() -> None:
    answers = [
        Asked(1, 0.001, "found"),
        Asked(4, 0.002, "found", ("vectors",)),
        Asked(0, 0.004, "none"),
        Asked(0, 0.003, "unavailable", ("vectors", "journal")),
    ]

    way = summed(("l0",), answers)

    assert (way.first, way.first_5, way.first_10, way.mrr) == (0.25, 0.5, 0.5, 0.3125)
    assert (way.p50_ms, way.p99_ms, way.unavailable) == (2.0, 4.0, 1)
    assert way.degraded == {"vectors": 2, "journal": 1}
