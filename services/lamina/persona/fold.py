"""What the persona service keeps of each event: atoms that may be lines, what was decided, what was edited. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from lamina.errors import Invalid
from lamina.events import (
    AtomsExtracted,
    AtomsReconciled,
    Blob,
    Event,
    MemoryCorrected,
    MemoryForgotten,
    MemoryUndone,
    PersonaEdited,
    PersonaRevised,
    StepFailed,
)
from lamina.ids import atom_id, line_id
from lamina.knowledge import MAX_ATOM_CHARS, Atom, Span
from lamina.persona.derive import edited, forgotten, revised
from lamina.persona.tables import TABLES, AtomRow, json
from lamina.persona.work import State, Work
from lamina.runtime import Change, Recorded, Rows
from lamina.times import micros

__all__ = ["REVISE", "TABLES", "VERSION", "State", "fold"]

VERSION = 2
REVISE = "persona.revise"
RECONCILE = "atoms.reconcile"
TYPES = ("instruction", "persona", "work_method")
OF_A_PERSON = "user."
"""Slots of what is so of a person, whatever the type of the atom: who moved lives elsewhere."""
CORRECTION_PRIORITY = 90


def fold(state: State, recorded: Recorded, rows: Rows) -> tuple[State, Sequence[Change]]:
    """Rows and the file after an event; what it may change of how atoms stand waits for a decision."""
    event, data = recorded.event, recorded.data
    change = _CHANGES.get(type(data))
    if event is None or change is None:
        return state, ()
    work = Work(state, rows, seq=recorded.seq, at_us=recorded.at_us, event=event.id, kind=event.type)
    change(work, event, recorded, data)
    changes = work.changes()
    return work.state, changes


def _extracted(work: Work, event: Event, recorded: Recorded, data: AtomsExtracted) -> None:
    new = []
    for index, atom in enumerate(data.atoms):
        id = atom_id(event.id, index)
        if _may_be_line(atom) and work.atom(id) is None and atom.sources:
            _add(work, event, id, atom)
            new.append(id)
    if data.atoms:
        work.state = replace(work.state, unreconciled=(*work.state.unreconciled, event.id))
    if new:
        work.wait(new)


def _may_be_line(atom: Atom) -> bool:
    return not atom.quarantine and (atom.type in TYPES or atom.slot.startswith(OF_A_PERSON)) and bool(atom.text)


def _add(work: Work, event: Event, id: str, atom: Atom) -> None:
    first = atom.sources[0]
    sources = tuple(dict.fromkeys(span.id for span in atom.sources))
    work.put_atom(
        AtomRow(
            id=id,
            type=atom.type,
            text=atom.text[:MAX_ATOM_CHARS],
            scope=atom.scope,
            polarity=atom.polarity,
            subject=atom.subject,
            slot=atom.slot,
            value=atom.value,
            priority=atom.priority,
            sources=json(sources),
            origins=json((*sources, event.id)),
            line=line_id("\x1f".join((first.id, str(first.start), str(first.end), atom.type, atom.slot))),
        )
    )
    for origin in dict.fromkeys((*sources, event.id)):
        work.origin(origin, id)


def _reconciled(work: Work, event: Event, recorded: Recorded, data: AtomsReconciled) -> None:
    _no_longer_unreconciled(work, data.inputs)
    touched = [id for one in data.operations if one.target for id in (one.atom, one.target)]
    known = [id for id in dict.fromkeys(touched) if work.atom(id) is not None]
    if known:
        work.wait(dict.fromkeys(touched))


def _failed(work: Work, event: Event, recorded: Recorded, data: StepFailed) -> None:
    if data.dead and data.step == RECONCILE:
        _no_longer_unreconciled(work, data.inputs)
    if data.dead and data.step == REVISE:
        work.looked(data.inputs)


def _no_longer_unreconciled(work: Work, decisions: Iterable[str]) -> None:
    done = set(decisions)
    left = tuple(id for id in work.state.unreconciled if id not in done)
    work.state = replace(work.state, unreconciled=left)


def _corrected(work: Work, event: Event, recorded: Recorded, data: MemoryCorrected) -> None:
    """A new atom like the one that it corrects; what that one said is looked at again."""
    text = (
        recorded.blobs.get(data.text.sha256, b"").decode("utf-8", "replace")
        if isinstance(data.text, Blob)
        else data.text
    )
    id = atom_id(event.id, 0)
    if work.atom(id) is not None or not text.strip():
        return
    targets = [data.target] if work.atom(data.target) is not None else list(work.came_of(data.target))
    like = next(filter(None, map(work.atom, targets)), None)
    length = min(len(text), MAX_ATOM_CHARS)
    atom = Atom(
        type=like.type if like is not None else "persona",  # type: ignore[arg-type]  # written by `_add`
        text=text[:MAX_ATOM_CHARS],
        sources=(Span(event.id, 0, length),),
        subject=like.subject if like is not None else "",
        slot=like.slot if like is not None else "",
        priority=max(CORRECTION_PRIORITY, like.priority if like is not None else 0),
        scope=like.scope if like is not None else "",  # type: ignore[arg-type]  # the same
    )
    _add(work, event, id, atom)
    work.wait([id, *targets])


def _undone(work: Work, event: Event, recorded: Recorded, data: MemoryUndone) -> None:
    _no_longer_unreconciled(work, (data.target,))
    work.wait(whole=True)


def _forgotten(work: Work, event: Event, recorded: Recorded, data: MemoryForgotten) -> None:
    _no_longer_unreconciled(work, data.ids)
    forgotten(work, data)
    work.wait(whole=True)


def _edited(work: Work, event: Event, recorded: Recorded, data: PersonaEdited) -> None:
    edited(work, event, recorded, data, when_us(event, recorded))


def _revised(work: Work, event: Event, recorded: Recorded, data: PersonaRevised) -> None:
    revised(work, event.id, data)


def when_us(event: Event, recorded: Recorded) -> int:
    """When it happened; when it came, where that cannot be read."""
    try:
        return micros(event.when)
    except Invalid:
        return recorded.at_us


_CHANGES: dict[Any, Callable[[Work, Event, Recorded, Any], None]] = {
    AtomsExtracted: _extracted,
    AtomsReconciled: _reconciled,
    StepFailed: _failed,
    MemoryCorrected: _corrected,
    MemoryUndone: _undone,
    MemoryForgotten: _forgotten,
    PersonaEdited: _edited,
    PersonaRevised: _revised,
}
