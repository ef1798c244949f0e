"""The order of keyword candidates: passages beat lone words, facts beat what restates them."""

from __future__ import annotations

import pytest

from lamina.text import Candidate, rank


def turn(
    number: int, score: float, *, session: str = "s", position: int | None = None, role: str = "user"
) -> Candidate:
    """A candidate whose position in its session is its number."""
    return Candidate(turn=number, session=session, position=number, role=role, score=score)


def test_nothing_gives_nothing() -> None:
    """No candidates, or none with a score, are an empty ranking."""
    assert rank([], "anything") == []
    assert rank([turn(1, 0.0)], "anything") == []


def test_parts_add_up_to_the_score() -> None:
    """What a score is made of is visible and complete."""
    ranked = rank([turn(1, 3.0), turn(2, 2.0, role="assistant"), turn(90, 1.0)], "redis port")

    for found in ranked:
        assert found.score == pytest.approx(sum(found.parts.values()))
        assert set(found.parts) == {"bm25", "passage", "around", "role"}


def test_a_passage_about_the_query_beats_a_lone_word() -> None:
    """Of two turns alike, the one among other finds of its session comes first."""
    ranked = rank([turn(1, 2.0), turn(50, 2.0), turn(52, 1.9), turn(54, 1.9)], "redis port")

    assert ranked[0].turn == 50
    assert ranked[-1].turn == 1


def test_a_passage_ends_with_its_session() -> None:
    """Finds of another session lend nothing, however near they were said."""
    alone = rank([turn(1, 2.0)], "redis")[0].score

    ranked = rank([turn(1, 2.0), turn(2, 5.0, session="other")], "redis")

    assert ranked[1].score == pytest.approx(alone)


def test_the_turns_around_a_find_fill_the_answer() -> None:
    """A turn without any term comes after the find beside it, the nearer the better, and far ones not at all."""
    ranked = rank([turn(10, 4.0), turn(9, 0.0), turn(12, 0.0), turn(13, 0.0)], "redis")

    assert [found.turn for found in ranked] == [10, 9, 12]
    assert ranked[1].parts["around"] == ranked[1].score


def test_what_the_user_said_comes_before_what_restates_it() -> None:
    """The assistant's turn of the same score ranks lower."""
    ranked = rank([turn(1, 2.0, role="assistant"), turn(2, 2.0)], "which port do I use?")

    assert [found.turn for found in ranked] == [2, 1]


@pytest.mark.parametrize(
    "query",
    [
        "What did you recommend for the port?",
        "In our previous conversation, which port was best?",
        "네가 추천한 포트는?",
        "你推荐的端口是什么？",
        "あなたが勧めたポートは？",
    ],
)
def test_asked_for_its_words_the_assistant_counts_as_much(query: str) -> None:
    """A question about what the assistant said does not hold its role against it."""
    ranked = rank([turn(1, 2.1, role="assistant"), turn(2, 2.0)], query)

    assert [found.turn for found in ranked] == [1, 2]


def test_ties_keep_the_order_of_the_log() -> None:
    """Equal scores are ordered by turn number, so that an answer can be told again."""
    ranked = rank([turn(40, 1.0), turn(1, 1.0), turn(80, 1.0)], "port")

    assert [found.turn for found in ranked] == [1, 40, 80]
