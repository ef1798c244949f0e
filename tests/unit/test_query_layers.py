"""When an atom stands for a turn in an answer, and when the turn stands for itself."""

from __future__ import annotations

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

    assert places([FIRST, AGAIN, again]) == [(FIRST.text, ("e1", "e4")), (AGAIN.text, ("e2",))]
    assert places([turn(1, "yes!"), turn(2, "Yes")]) == [("yes!", ("e1",)), ("Yes", ("e2",))]


def test_an_atom_and_the_turn_that_repeats_it_are_one_place() -> None:
    repeated = atom("User: I like the green tea of Jeju.", "e1", "e5", count=2)

    assert places([FIRST, turn(5, "I like the green tea of Jeju")], repeated) == [(repeated.text, ("e1", "e5"))]
