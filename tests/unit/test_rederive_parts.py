"""Pairs of atoms, and decisions of a shadow as the space will have them: pure parts of second thoughts."""

from __future__ import annotations

from datetime import UTC, datetime

from lamina import events, ids
from lamina.events import AtomsExtracted, AtomsReconciled, Event, StepFailed
from lamina.knowledge import Atom, Operation, Span
from lamina.rederive.adopt import Renamed, adopted
from lamina.rederive.compare import Stands, compare, mapped

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def stands(id: str, same: str, *sources: tuple[str, int, int]) -> Stands:
    return Stands(id, "persona", id, same, tuple(Span(*one) for one in sources))


def test_atoms_that_say_the_same_are_paired_first_then_those_over_the_same_words() -> None:
    before = [stands("a", "1", ("t", 0, 10)), stands("b", "2", ("t", 0, 10)), stands("c", "3", ("u", 0, 5))]
    after = [stands("x", "2", ("t", 0, 10)), stands("y", "9", ("t", 5, 20)), stands("z", "8", ("v", 0, 5))]

    found = compare(before, after)

    assert [(one.id, other.id) for one, other in found.same] == [("b", "x")]
    assert [(one.id, other.id) for one, other in found.changed] == [("a", "y")]
    assert ([one.id for one in found.lost], [one.id for one in found.gained]) == (["c"], ["z"])
    assert mapped(found) == {"b": "x", "a": "y"}


def test_an_atom_has_one_partner_the_one_with_most_words_in_common() -> None:
    before = [stands("a", "1", ("t", 0, 30)), stands("b", "2", ("t", 0, 12))]
    after = [stands("x", "3", ("t", 0, 30)), stands("y", "4", ("t", 10, 12))]

    found = compare(before, after)

    assert [(one.id, other.id) for one, other in found.changed] == [("a", "x"), ("b", "y")]


def test_the_same_twice_is_one_pair_and_a_gain() -> None:
    found = compare([stands("a", "1", ("t", 0, 1))], [stands("x", "1", ("t", 0, 1)), stands("y", "1", ("u", 0, 1))])

    assert (len(found.same), [one.id for one in found.gained]) == (1, ["y"])


def decision(data: AtomsExtracted | AtomsReconciled | StepFailed, id: str) -> Event:
    return events.make(data, id=id, space="alice", time=NOW, cause=data.inputs)


def test_decisions_are_numbered_behind_those_there_are_and_their_ties_lead_to_the_same_atoms() -> None:
    atom = Atom(type="persona", text="x", sources=(Span("t", 0, 1),))
    extraction = decision(
        AtomsExtracted(
            step="atoms.extract", n=1, inputs=("t",), windows=(1,), extractor="e", version="1", atoms=(atom,)
        ),
        "shadow-1",
    )
    failure = decision(StepFailed(step="atoms.extract", n=2, inputs=("u",), attempt=1, error="away"), "shadow-2")
    tie = Operation(verb="supersede", atom=ids.atom_id("shadow-1", 0), target="of-a-correction")
    ties = decision(
        AtomsReconciled(step="atoms.reconcile", n=1, inputs=("shadow-1",), rules="r", operations=(tie,)), "shadow-3"
    )

    numbers = {"atoms.extract": 7}
    made = adopted("alice", [extraction, failure, ties], numbers, "cause", NOW, Renamed())

    assert [old for old, _ in made] == ["shadow-1", "shadow-3"]
    first, second = (events.decode_data(event) for _, event in made)
    assert isinstance(first, AtomsExtracted)
    assert isinstance(second, AtomsReconciled)
    assert (first.n, first.again, second.n) == (8, True, 1)
    assert made[0][1].id == ids.decision_id("alice", "atoms.extract", 8, ("t",))
    assert second.inputs == (made[0][1].id,)
    assert second.operations[0].atom == ids.atom_id(made[0][1].id, 0)
    assert second.operations[0].target == "of-a-correction"
    assert all(event.cause[-1] == "cause" for _, event in made)


def test_what_came_second_is_numbered_again_and_what_leans_on_it_follows() -> None:
    names = Renamed()
    extraction = decision(
        AtomsExtracted(step="atoms.extract", n=1, inputs=("t",), windows=(1,), extractor="e", version="1"), "s"
    )
    ((_, first),) = adopted("alice", [extraction], {"atoms.extract": 1}, "cause", NOW, names)
    ((_, later),) = adopted("alice", [extraction], {"atoms.extract": 4}, "cause", NOW, names)

    assert first.id != later.id
    assert names("s") == later.id
