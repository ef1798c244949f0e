"""The fusion of both legs: what counts, what adds up, what it does where one leg is silent."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.query.fuse import LONG_WEIGHT, SHORT_WEIGHT, Beside, Fact, Scope, fuse, scales, vector_weight
from lamina.text import Candidate, Ranked

SCOPE = Scope(0.75, 0.8, 0.95)


def fact(
    turn: int, bm25: float = 0.0, cosine: float | None = 0.8, chars: int = 80, role: str = "user", beside: float = 0.0
) -> Fact:
    keyword = Ranked(turn, bm25, {"bm25": bm25}) if bm25 else None
    around = (Beside(1, 80, beside),) if beside else ()
    return Fact(Candidate(turn, "s", turn, role, bm25), chars, keyword, cosine, around)


def order(*facts: Fact, query: str = "q") -> list[int]:
    return [one.turn for one in fuse(facts, query, SCOPE)]


def test_what_both_legs_find_comes_first() -> None:
    assert order(fact(1, bm25=5), fact(2, cosine=0.95), fact(3, bm25=4, cosine=0.94)) == [3, 1, 2]


def test_a_silent_leg_leaves_the_order_to_the_other() -> None:
    assert order(fact(1, cosine=0.9), fact(2, cosine=0.95), fact(3)) == [2, 1, 3]
    assert order(fact(1, bm25=1, cosine=None), fact(2, bm25=3, cosine=None)) == [2, 1]


def test_a_text_without_a_vector_is_ranked_by_its_words() -> None:
    """While vectors are made, what words found best stays first, and nothing is put before it for having one."""
    assert order(fact(1, bm25=5, cosine=None), fact(2, bm25=4, cosine=0.86), fact(3, cosine=0.95)) == [1, 2, 3]
    best, *_ = fuse([fact(1, bm25=5, cosine=None), fact(2, cosine=0.95)], "q", SCOPE)
    assert best.parts["bm25"] == pytest.approx(1.0 - SHORT_WEIGHT)
    assert best.parts["vector"] == pytest.approx(SHORT_WEIGHT)


def test_vectors_weigh_by_the_share_of_the_texts_that_have_one() -> None:
    facts = [fact(1, bm25=5, cosine=0.76), fact(2, bm25=4, cosine=0.95)]

    assert [one.turn for one in fuse(facts, "q", SCOPE, scales(facts, "q"))] == [2, 1]
    assert [one.turn for one in fuse(facts, "q", SCOPE, scales(facts, "q", 0.1))] == [1, 2]
    assert scales(facts, "q", 0.1).weight == pytest.approx(0.1 * SHORT_WEIGHT)
    assert scales([fact(1)], "q", 0.1).weight == 1.0  # no word is found: they are all there is


def test_vectors_count_more_among_long_texts() -> None:
    assert vector_weight([fact(1, chars=20), fact(2, chars=90), fact(3, chars=5_000)]) == SHORT_WEIGHT
    assert vector_weight([fact(1, chars=20), fact(2, chars=2_000), fact(3, chars=5_000)]) == LONG_WEIGHT
    assert SHORT_WEIGHT < vector_weight([fact(1, chars=500)]) < LONG_WEIGHT


def test_a_short_turn_beside_a_near_one_gains_and_a_long_one_does_not() -> None:
    assert order(fact(1), fact(2, beside=0.95)) == [2, 1]
    assert order(fact(1, chars=2_000), fact(2, chars=2_000, beside=0.95)) == [1, 2]


def test_the_users_own_words_come_before_what_was_answered_unless_that_is_asked_for() -> None:
    both = (fact(1, cosine=0.9, role="assistant"), fact(2, cosine=0.89))

    assert order(*both) == [2, 1]
    assert order(*both, query="what did you recommend?") == [1, 2]


def test_ties_are_broken_by_turn_and_the_order_given_does_not_matter() -> None:
    facts = [fact(n, bm25=1.0) for n in range(20)]
    mixed = random.Random(1).sample(facts, len(facts))

    assert order(*mixed) == list(range(20))


def test_nothing_and_one_text_alone_are_answered() -> None:
    assert fuse([], "q", SCOPE) == []
    assert fuse([fact(1, cosine=0.8)], "q", Scope(0.8, 0.8, 0.8))[0].score == 0.0


@given(
    st.lists(
        st.tuples(
            st.floats(0, 50), st.none() | st.floats(-1, 1), st.integers(0, 10**6), st.sampled_from(["user", "tool"])
        ),
        max_size=30,
    )
)
def test_parts_add_up_and_no_score_is_below_zero(
    given_facts: list[tuple[float, float | None, int, str]],
) -> None:
    facts = [fact(n, bm25, cosine, chars, role) for n, (bm25, cosine, chars, role) in enumerate(given_facts)]
    for one in fuse(facts, "q", Scope(-1, 0, 1)):
        assert sum(one.parts.values()) == pytest.approx(one.score)
        assert one.score >= 0
