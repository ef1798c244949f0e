"""When each event of a space was first known, and what of it to leave out of the memory of a moment. Pure.

What was said is known when it happened, or when it came into the log where that was earlier: so a log imported
today is known by its own times, and a clock that runs ahead moves nothing into the future. What was derived is
known with the latest of what it was derived from, whenever it was decided; of an extraction over many turns that
is told for each atom.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from lamina import events
from lamina.errors import Invalid
from lamina.events import AtomsExtracted, AtomsReconciled, MemoryForgotten
from lamina.ids import atom_id
from lamina.runtime.reading import Read
from lamina.times import micros


class Known:
    """Of the events of one space, given in log order. Given again, an event says the same again."""

    def __init__(self) -> None:
        self._us: dict[str, int] = {}

    def at(self, read: Read, until_us: int) -> Read | None:
        """The event as it was known at `until_us`; None where it was not. What was forgotten since then stays
        forgotten."""
        recorded = read.recorded
        event, data = recorded.event, recorded.data
        if event is None:
            return read if recorded.at_us <= until_us else None
        decision = events.read_decision(event)
        if decision is None:
            us = self._us.setdefault(event.id, _said_us(event, recorded.at_us))
            self._us.setdefault(atom_id(event.id, 0), us)
            return read if us <= until_us or isinstance(data, MemoryForgotten) else None
        beside = [self._us.get(id, recorded.at_us) for id in event.cause if id not in decision.inputs]
        inputs = [self._us.get(id, recorded.at_us) for id in decision.inputs] or [recorded.at_us]
        if not isinstance(data, AtomsExtracted | AtomsReconciled):
            us = self._us.setdefault(event.id, max(*beside, *inputs, 0))
            return read if us <= until_us else None
        us = self._us.setdefault(event.id, max(*beside, min(inputs), 0))
        if isinstance(data, AtomsExtracted):
            data = self._pruned(event.id, data, us, until_us)
        return _with(read, data) if us <= until_us else None

    def _pruned(self, decision: str, data: AtomsExtracted, least_us: int, until_us: int) -> AtomsExtracted:
        """An extraction without the atoms that are known later; each keeps its place, which is its id."""
        atoms = []
        for index, atom in enumerate(data.atoms):
            us = max(least_us, *self._all(span.id for span in atom.sources), 0)
            us = self._us.setdefault(atom_id(decision, index), us)
            atoms.append(atom if us <= until_us else replace(atom, text="", sources=()))
        return replace(data, atoms=tuple(atoms))

    def _all(self, ids: Iterable[str]) -> list[int]:
        return [self._us[id] for id in ids if id in self._us]


def _said_us(event: events.Event, at_us: int) -> int:
    try:
        return min(micros(event.when), at_us)
    except Invalid:
        return at_us


def _with(read: Read, data: Any) -> Read:
    return replace(read, recorded=replace(read.recorded, data=data))
