"""One answer from what was said and what was made of it: turns keep their places, atoms speak for them. Pure.

An atom never adds a place that a turn would have had, so that with atoms no turn is found later than without,
but for one whose statement no longer holds: what replaced it stands above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.query.atoms import AtomFound, AtomsFound
from lamina.query.keywords import Found
from lamina.requests import Turn

SPEAKS = 0.5
"""Of the best atom's score: an atom with as much says what was asked, and stands for its turn."""
PRIORITY = 0.2
OUTDATED = 0.5
"""What of its score an atom loses that was superseded, where atoms are asked for alone."""


class Place(Struct, frozen=True, kw_only=True):
    """A place of the answer: a turn, or an atom, with the turns behind it. `note` says what no longer holds."""

    turn: Turn | None = None
    atom: AtomFound | None = None
    turns: tuple[Turn, ...] = ()
    score: float = 0.0
    parts: Mapping[str, float] = {}
    note: str = ""


def turns_wanted(found: Sequence[Found], atoms: AtomsFound) -> list[str]:
    """The events whose turns `woven` and `alone` ask for: what is behind the atoms."""
    every = (*atoms.ranked, *atoms.others.values())
    ids = dict.fromkeys(source for atom in every for source in atom.sources)
    for one in found:
        ids.pop(one.turn.id, None)
    return list(ids)


def woven(found: Sequence[Found], atoms: AtomsFound, turns: Mapping[str, Turn]) -> list[Place]:
    """The turns in their order; where an atom says what was asked, the atom in place of its turn; and above what
    no longer holds, what holds instead."""
    known = dict(turns) | {one.turn.id: one.turn for one in found}
    best = max((atom.score for atom in atoms.ranked), default=0.0)
    of_turn: dict[str, AtomFound] = {}
    for atom in atoms.ranked:
        for source in atom.sources:
            of_turn.setdefault(source, atom)
    placed: dict[str, None] = {}
    shown: set[str] = set()
    places: list[Place] = []
    scored = {one.turn.id: one for one in found}

    def put(id: str, like: Found) -> None:
        if id in placed or id not in known:
            return
        placed[id] = None
        atom = of_turn.get(id)
        if atom is not None and atom.status == "superseded" and atom.by in atoms.others:
            for source in atoms.others[atom.by].sources[:1]:
                put(source, like)
        own = scored.get(id, like)
        if atom is not None and atom.id not in shown and best and atom.score >= SPEAKS * best:
            shown.add(atom.id)
            behind = (known[id], *(known[one] for one in atom.sources if one != id and one in known))
            places.append(
                Place(atom=atom, turns=behind, score=own.score, parts=own.parts, note=note(atom, atoms.others))
            )
        else:
            told = note(atom, atoms.others) if atom is not None and atom.status == "superseded" else ""
            places.append(Place(turn=known[id], turns=(known[id],), score=own.score, parts=own.parts, note=told))

    for one in found:
        put(one.turn.id, one)
    return places


def alone(atoms: AtomsFound, turns: Mapping[str, Turn]) -> list[Place]:
    """Atoms by themselves, best first: their words, a little of their priority; what was superseded comes after
    what replaced it."""
    best = max((atom.score for atom in atoms.ranked), default=0.0)
    places = []
    for atom in atoms.ranked:
        words = atom.score / best if best else 0.0
        parts = {"bm25": words, "priority": PRIORITY * atom.priority / 100}
        if atom.status == "superseded":
            parts["superseded"] = -OUTDATED * sum(parts.values())
        behind = tuple(turns[one] for one in atom.sources if one in turns)
        places.append(
            Place(atom=atom, turns=behind, score=sum(parts.values()), parts=parts, note=note(atom, atoms.others))
        )
    places.sort(key=lambda place: (-place.score, place.atom.n if place.atom else 0))
    return _in_order(places, atoms)


def _in_order(places: Sequence[Place], atoms: AtomsFound) -> list[Place]:
    """What replaced an atom stands above it, also where no word of the query led there."""
    left = {place.atom.id: place for place in places if place.atom is not None}
    made: list[Place] = []
    for place in places:
        atom = place.atom
        if atom is None or atom.id not in left:
            continue
        above = left.pop(atom.by, None) if atom.status == "superseded" else None
        if above is not None:
            made.append(replace(above, score=max(above.score, place.score)))
        made.append(left.pop(atom.id))
    return made


def note(atom: AtomFound, others: Mapping[str, AtomFound]) -> str:
    """What is to be said with an atom, so that nobody takes it for more than it is."""
    if atom.status == "quarantined":
        return f"quarantined: {atom.quarantine}"
    if atom.status == "superseded":
        newer = others.get(atom.by)
        until = f" on {atom.until[:10]}" if atom.until else ""
        return f"superseded{until}" + (f" by: {newer.text}" if newer is not None else "")
    if atom.status == "contradicted":
        return f"contradicted: {atom.reason}"
    return ""
