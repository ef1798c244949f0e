"""What a model is asked of new atoms that no rule decides, and what of its answer is followed. Pure.

The rules keep the last word: what they decided stands, speakers who differ are marked and not judged, and of two
statements the one that was said later ends the other, whichever of them came in last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from lamina.atoms.graph import CONTRADICT, REINFORCE, SUPERSEDE
from lamina.atoms.model import Candidate
from lamina.atoms.tables import AtomRow, strings
from lamina.knowledge import ATOM_TYPES, Atom, Operation, Scope, Span

MOST_FRESH = 20
MOST_CANDIDATES = 30
_SCOPES: tuple[Scope, ...] = ("global", "project", "scenario")


def unclear(new: Sequence[AtomRow], decided: Iterable[Operation]) -> list[Candidate]:
    """The new atoms, oldest first, on which the rules say no more than that they are new."""
    clear = {id for one in decided if one.verb != "add" for id in (one.atom, one.target)}
    left = [atom for atom in new if atom.id not in clear and not atom.quarantine and not atom.removed_by]
    return [_candidate(atom) for atom in left[:MOST_FRESH]]


def candidates(alike: Sequence[AtomRow], decided: Iterable[Operation]) -> list[Candidate]:
    """The known atoms that stand and are alike; what the rules have just ended is none of them."""
    ended = {one.target for one in decided if one.verb == SUPERSEDE}
    standing = [atom for atom in alike if atom.status == "active" and atom.id not in ended and not atom.quarantine]
    return [_candidate(atom) for atom in standing[:MOST_CANDIDATES]]


def merged(
    decided: Sequence[Operation], asked: Sequence[Operation], rows: Mapping[str, AtomRow]
) -> tuple[Operation, ...]:
    """The operations of the rules, and in the place of a bare `add` what the model says instead, if that may be."""
    said = {one.atom: fitted for one in asked if (fitted := _fitted(one, rows)) is not None}
    return tuple(said.get(one.atom, one) if one.verb == "add" else one for one in decided)


def _fitted(one: Operation, rows: Mapping[str, AtomRow]) -> Operation | None:
    if one.verb not in (SUPERSEDE, REINFORCE, CONTRADICT):
        return None
    atom, target = rows[one.atom], rows[one.target]
    joint = atom.type.startswith("work_") and atom.project == target.project
    if one.verb == SUPERSEDE and atom.said_by != target.said_by and not joint:
        return replace(one, verb=CONTRADICT)
    if one.verb == SUPERSEDE and (atom.time_us, atom.n) < (max(target.time_us, target.last_us), target.n):
        return replace(one, atom=target.id, target=atom.id)
    return one


def _candidate(row: AtomRow) -> Candidate:
    atom = Atom(
        type=next(kind for kind in ATOM_TYPES if kind == row.type),
        text=row.text,
        sources=(Span(row.id, 0, 0),),
        subject=row.subject,
        slot=row.slot,
        value=row.value,
        entities=strings(row.entities),
        priority=row.priority,
        scope=next((scope for scope in _SCOPES if scope == row.scope), ""),
        polarity=row.polarity,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        quarantine=row.quarantine,
    )
    return Candidate(id=row.id, atom=atom, time=row.time)
