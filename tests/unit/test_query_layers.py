"""When an atom stands for a turn in an answer, and when the turn stands for itself."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lamina.query.atoms import AtomFound, AtomsFound
from lamina.query.keywords import Found
from lamina.query.layers import woven
from lamina.requests import Turn


def turn(n: int, said: str) -> Turn:
    rest = {"session": "s", "role": "user", "name": "", "agent": "", "project": "", "time": "2026-11-30T09:00:00Z"}
    return Turn(seq=n, id=f"e{n}", type="turn.recorded", turn_id=f"t{n}", text=said, **rest)


def found(*turns: Turn) -> list[Found]:
    return [Found(one, 1.0 / n, {"bm25": 1.0 / n}) for n, one in enumerate(turns, 1)]


def atom(text: str, *sources: str, count: int = 1) -> AtomFound:
    fields = dict.fromkeys(("by", "reason", "time", "until", "session", "said_by", "quarantine"), "")
    return AtomFound(
        id="a",
        n=1,
        type="persona",
        text=text,
        status="active",
        priority=60,
        count=count,
        time_us=0,
        last_us=0,
        sources=sources,
        score=5.0,
        **fields,
    )


def answer(turns: list[Turn], one: AtomFound) -> list[str]:
    places = woven(found(*turns), AtomsFound(ranked=(one,)), {})
    return [place.atom.text if place.atom is not None else place.turn.text if place.turn else "" for place in places]


FIRST = turn(1, "I like the green tea of Jeju.")
AGAIN = turn(2, "And I like green tea from Boseong even more!")
SAME = turn(3, "As I said: I like the green tea of Jeju.")


def test_an_atom_stands_for_the_turn_that_it_was_made_of() -> None:
    assert answer([FIRST], atom("User: I like the green tea of Jeju.", "e1")) == [
        "User: I like the green tea of Jeju."
    ]


def test_a_repetition_in_other_words_stands_for_itself() -> None:
    repeated = atom("User: I like the green tea of Jeju.", "e1", "e2", count=2)

    assert answer([AGAIN, FIRST], repeated) == [AGAIN.text, repeated.text]
    assert answer([AGAIN], repeated) == [AGAIN.text]


def test_a_repetition_in_the_same_words_is_told_by_its_atom() -> None:
    repeated = atom("User: I like the green tea of Jeju (2026-11-30).", "e1", "e3", count=2)

    assert answer([SAME], repeated) == [repeated.text]
    assert answer(
        [turn(3, "I like the green tea of Jeju")], atom("User: I like the green tea of Jeju", "e1", "e3", count=2)
    ) == ["User: I like the green tea of Jeju"]


def places(turns: list[Turn], one: AtomFound | None = None) -> list[tuple[str, tuple[str, ...]]]:
    made = woven(found(*turns), AtomsFound(ranked=(one,) if one is not None else ()), {})
    return [
        (place.atom.text if place.atom is not None else turn_text(place.turn), tuple(turn.id for turn in place.turns))
        for place in made
    ]


def turn_text(one: Turn | None) -> str:
    assert one is not None
    return one.text


def test_the_same_said_twice_is_one_place_with_both_turns() -> None:
    again = turn(4, "i like the green tea, of  JEJU!")

    assert places([FIRST, AGAIN, again]) == [(again.text, ("e4", "e1")), (AGAIN.text, ("e2",))]
    assert places([turn(1, "yes!"), turn(2, "Yes")]) == [("yes!", ("e1",)), ("Yes", ("e2",))]


def test_an_atom_and_the_turn_that_repeats_it_are_one_place() -> None:
    repeated = atom("User: I like the green tea of Jeju.", "e1", "e5", count=2)

    assert places([FIRST, turn(5, "I like the green tea of Jeju")], repeated) == [(repeated.text, ("e1", "e5"))]


def test_what_was_said_again_after_something_else_is_told_as_of_the_newer_time() -> None:
    then = replace(turn(1, "I live in Busan now."), time="2024-01-01T00:00:00Z")
    again = replace(turn(3, "I live in Busan now"), time="2026-01-01T08:00:00+09:00")
    (place,) = woven(found(then, again), AtomsFound(), {})

    assert place.turn == again
    assert (place.score, place.parts) == (1.0, {"bm25": 1.0})
    assert place.turns == (again, then)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The fee is $1,000 a year", "The fee is $10.00 a year"),
        ("The ratio was 1.5 here", "The ratio was 15 here"),
        ("Balance: -50 this month", "Balance: 50 this month"),
        ("I use C++ at work daily", "I use C at work daily"),
        ("Done with the task 👍", "Done with the task 👎"),
        ("We shipped it today?", "We shipped it today."),
    ],
)
def test_what_differs_in_a_mark_that_means_something_is_not_the_same(one: str, other: str) -> None:
    assert places([turn(1, one), turn(2, other)]) == [(one, ("e1",)), (other, ("e2",))]


def test_the_same_words_of_two_speakers_are_two_statements() -> None:
    other = replace(turn(2, "I have two children."), name="Mina")

    assert len(places([turn(1, "I have two children."), other])) == 2
