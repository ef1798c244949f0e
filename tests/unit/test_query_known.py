"""When an event was known: what was said by its own time, what was derived with the latest of what it came from."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lamina import events, ids
from lamina.events import (
    AtomsExtracted,
    AtomsReconciled,
    MemoryForgotten,
    StepFailed,
    TurnRecorded,
)
from lamina.knowledge import Atom, Operation, Span
from lamina.query.known import Known
from lamina.runtime.reading import Read
from lamina.runtime.spec import Recorded
from lamina.times import from_micros

NOW_US = 1_800_000_000_000_000
SECOND_US = 1_000_000


def read(data: Struct, *, id: str, us: int, at_us: int = NOW_US, cause: tuple[str, ...] = (), seq: int = 1) -> Read:
    event = events.make(data, id=id, space="alice", time=from_micros(us), cause=cause)
    recorded = Recorded(seq=seq, at_us=at_us, raw=b"", event=event, data=events.decode_data(event))
    return Read(seq, "", b"", at_us, None, "alice", recorded, ())


def turn(id: str, second: int, **more: Any) -> Read:
    return read(TurnRecorded(role="user", text=id), id=id, us=second * SECOND_US, **more)


def atom(*sources: str) -> Atom:
    return Atom(type="persona", text=" ".join(sources), sources=tuple(Span(one, 0, 1) for one in sources))


def extracted(id: str, inputs: tuple[str, ...], *atoms: Atom, cause: tuple[str, ...] = ()) -> Read:
    data = AtomsExtracted(
        step="atoms.extract", n=1, inputs=inputs, windows=(len(inputs),), extractor="x", version="1", atoms=atoms
    )
    return read(data, id=id, us=NOW_US, cause=(*inputs, *cause))


def texts(found: Read | None) -> list[str]:
    assert found is not None
    data = found.recorded.data
    assert isinstance(data, AtomsExtracted)
    return [one.text for one in data.atoms]


def test_what_was_said_is_known_when_it_happened_or_came() -> None:
    known = Known()
    assert known.at(turn("a", 10), 10 * SECOND_US) is not None
    assert known.at(turn("b", 10), 10 * SECOND_US - 1) is None
    ahead = turn("c", 900, at_us=20 * SECOND_US)
    assert known.at(ahead, 20 * SECOND_US) is not None
    assert known.at(ahead, 20 * SECOND_US - 1) is None


def test_an_atom_is_known_with_the_latest_of_its_sources_and_keeps_its_place() -> None:
    known = Known()
    for id, second in (("a", 10), ("b", 20), ("c", 30)):
        known.at(turn(id, second), 20 * SECOND_US)
    decision = extracted("d", ("a", "b", "c"), atom("c"), atom("a", "c"), atom("a", "b"), atom("a"))

    assert texts(known.at(decision, 20 * SECOND_US)) == ["", "", "a b", "a"]
    assert texts(known.at(decision, 10 * SECOND_US)) == ["", "", "", "a"]
    assert texts(known.at(decision, 30 * SECOND_US)) == ["c", "a c", "a b", "a"]
    assert known.at(decision, 9 * SECOND_US) is None


def test_a_decision_made_anew_is_known_from_then_on() -> None:
    """What caused it beside its inputs counts for all of it."""
    known = Known()
    known.at(turn("a", 10), 0)
    known.at(turn("again", 500), 0)
    decision = extracted("d", ("a",), atom("a"), cause=("again",))

    assert known.at(decision, 499 * SECOND_US) is None
    assert texts(known.at(decision, 500 * SECOND_US)) == ["a"]


def test_other_decisions_need_all_that_they_were_made_of() -> None:
    known = Known()
    known.at(turn("a", 10), 0)
    known.at(turn("b", 20), 0)
    failed = StepFailed(step="atoms.extract", n=1, inputs=("a", "b"), attempt=1, error="away")

    assert known.at(read(failed, id="f", us=NOW_US, cause=("a", "b")), 19 * SECOND_US) is None
    assert known.at(read(failed, id="f", us=NOW_US, cause=("a", "b")), 20 * SECOND_US) is not None


def test_a_reconciliation_is_known_with_the_first_of_its_atoms() -> None:
    """Its ties between atoms that are not known yet find nothing to tie."""
    known = Known()
    known.at(turn("a", 10), 0)
    known.at(extracted("d", ("a",), atom("a")), 0)
    ties = (Operation(verb="add", atom=ids.atom_id("d", 0)),)
    data = AtomsReconciled(step="atoms.reconcile", n=1, inputs=("d",), rules="1", operations=ties)

    assert known.at(read(data, id="r", us=NOW_US, cause=("d",)), 10 * SECOND_US) is not None
    assert known.at(read(data, id="r", us=NOW_US, cause=("d",)), 9 * SECOND_US) is None


def test_what_was_forgotten_since_is_forgotten_then() -> None:
    forgotten = read(MemoryForgotten(ids=("a",)), id="g", us=NOW_US)

    assert Known().at(forgotten, 0) is not None
