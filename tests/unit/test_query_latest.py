"""Which of two turns that tell the same stands first, and for which questions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lamina import text
from lamina.query.latest import Told, asks_present, latest

WORDS = frozenset({"budget", "book", "monthli"})


def ranking(*scores: float) -> list[text.Ranked]:
    return [text.Ranked(n, score, {"bm25": score}) for n, score in enumerate(scores, 1)]


def told(
    *times: int, role: str = "user", chars: int = 100, words: Mapping[int, frozenset[str]] | None = None
) -> dict[int, Told]:
    return {
        n: Told(time_us=when, role=role, chars=chars, words=(words or {}).get(n, WORDS))
        for n, when in enumerate(times, 1)
    }


def order(ranked: list[text.Ranked]) -> list[int]:
    return [one.turn for one in ranked]


def always(one: int, other: int) -> float:
    return 0.95


@pytest.mark.parametrize(
    "query",
    [
        *("What is my monthly budget?", "How many commits are in the repository?", "When is the webinar?"),
        *("Where do I live?", "what database do we use", "내 예산이 얼마야?", "지금 어디 살아?", "我的预算是多少？"),
        *("会议是什么时候？", "予算はいくらですか？", "今の住所はどこ？"),
    ],
)
def test_questions_of_how_things_are(query: str) -> None:
    assert asks_present(query)


@pytest.mark.parametrize(
    "query",
    [
        *("What was my first budget?", "Where did I live before?", "How has my budget changed?", "deploy steps"),
        *(
            "I moved lately. Where do I live?",
            "처음에 예산이 얼마였지?",
            "我以前住在哪里？",
            "最初の予算はいくらでした？",
            "",
        ),
    ],
)
def test_other_questions(query: str) -> None:
    assert not asks_present(query)


def test_the_newer_of_two_stands_first_and_the_rest_stay() -> None:
    found = latest(ranking(10, 9, 8, 1), told(5, 1, 7, 9), always)

    assert order(found) == [3, 1, 2, 4]
    assert [one.score for one in found] == [10, 10, 9, 1]
    assert found[0].parts == {"bm25": 8, "recency": 2}
    assert all(sum(one.parts.values()) == one.score for one in found)


def test_newer_ones_stand_newest_first() -> None:
    assert order(latest(ranking(10, 9, 8), told(1, 5, 7), always)) == [3, 2, 1]
    assert order(latest(ranking(10, 9, 8), told(1, 7, 5), always)) == [2, 3, 1]


@pytest.mark.parametrize(
    ("ranked", "known"),
    [
        pytest.param(ranking(10, 6.9), told(1, 2), id="much less of a score"),
        pytest.param(ranking(10, 9), told(2, 1), id="older"),
        pytest.param(ranking(10, 9), told(1, 2, role="assistant"), id="not the user's"),
        pytest.param(ranking(10, 9), told(1, 2, words={1: frozenset()}), id="found by no word"),
        pytest.param(ranking(10, 9), told(1, 2, words={2: frozenset({"budget"})}), id="another thing of the same"),
        pytest.param(
            ranking(10, 9), told(1, 2, chars=40, words={2: WORDS - {"book"}}), id="short: a word is missing"
        ),
        pytest.param(ranking(10, 9), {}, id="not known"),
    ],
)
def test_what_changes_nothing(ranked: list[text.Ranked], known: dict[int, Told]) -> None:
    assert latest(ranked, known, always) == ranked


def test_long_ones_may_say_it_in_other_words_and_unlike_ones_never() -> None:
    known = told(1, 2, chars=400, words={2: WORDS - {"book"}})

    assert order(latest(ranking(10, 9), known, always)) == [2, 1]
    assert order(latest(ranking(10, 9), known, lambda one, other: 0.89)) == [1, 2]


def test_below_the_first_ten_nothing_moves() -> None:
    ranked = ranking(*([10.0] * 12))
    found = latest(ranked, told(*([1] * 10), 5, 6), always)

    assert order(found)[10:] == [11, 12]
    assert set(order(found)[:10]) == set(range(1, 11))


def test_an_answer_of_fewer_holds_the_same_turns_in_another_order() -> None:
    ranked, known = ranking(10, 9, 8), told(1, 2, 3)

    assert order(latest(ranked, known, always)) == [3, 2, 1]
    assert order(latest(ranked, known, always, most=2)) == [2, 1, 3]
    assert order(latest(ranked, known, always, most=1)) == [1, 2, 3]
