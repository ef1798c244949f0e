"""One answer from what was said and what was made of it: turns keep their places, atoms speak for them. Pure.

An atom never adds a place that a turn would have had, so that with atoms no turn is found later than without,
but for one whose statement no longer holds: what replaced it stands above it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.query.atoms import AtomFound, AtomsFound
from lamina.query.keywords import Found
from lamina.requests import Turn
from lamina.times import aware, micros

SPEAKS = 0.5
"""Of the best atom's score: an atom with as much says what was asked, and stands for its turn."""
PRIORITY = 0.2
OUTDATED = 0.5
"""What of its score an atom loses that was superseded, where atoms are asked for alone."""
SHORTEST = 8
"""Letters and digits that two texts have, at least, to be taken for one."""
_WORD = re.compile(r"\w+")
_SOFT = re.compile(r"(?<!\d)[,，、]|[,，、](?!\d)|[.!。！…\s]+$")
_DAYS = re.compile(r" \(\d{4}-[\d-]+(?: to [\d-]+)?\)")


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
    no longer holds, what holds instead. An atom that no turn stands for (a correction) is first if it says what
    was asked, else last."""
    weaving = _Weaving(found, atoms, turns)
    bare = [atom for atom in atoms.ranked if not any(source in weaving.known for source in atom.sources)]
    for atom in bare:
        if weaving.speaks(atom):
            weaving.atom(atom)
    for one in found:
        weaving.turn(one.turn.id, one)
    for atom in bare:
        weaving.atom(atom)
    return collapsed(weaving.places)


def collapsed(places: Sequence[Place]) -> list[Place]:
    """Places where the same speaker says the same in the same words are one, where the first of them stands, with
    the turns behind all. Of turns it is the newest that is given: what was said again holds from then. What no longer
    holds is never one with what does."""
    kept: dict[tuple[str, ...], int] = {}
    made: list[Place] = []
    for place in places:
        key = _saying(place)
        if key is None or key not in kept:
            if key is not None:
                kept[key] = len(made)
            made.append(place)
            continue
        first = made[kept[key]]
        known = {turn.id for turn in first.turns}
        turns = (*first.turns, *(turn for turn in place.turns if turn.id not in known))
        if first.atom is None:
            turns = tuple(sorted(turns, key=_age, reverse=True))
            first = replace(first, turn=turns[0])
        made[kept[key]] = replace(first, turns=turns)
    return made


def _saying(place: Place) -> tuple[str, ...] | None:
    """Who says what, for comparison; None of what is so short that it says nothing by itself.

    Capitals, blanks, commas and the full stop at the end make no difference. Every other mark may: 1.5 is not 15, C++
    not C, and a question no statement.
    """
    said = _DAYS.sub("", place.atom.text.partition(": ")[2]) if place.atom is not None else ""
    said = said or (place.turn.text if place.turn is not None else "")
    if sum(map(len, _WORD.findall(said))) < SHORTEST:
        return None
    who = (place.turns[0].role, place.turns[0].name) if place.turns else ("", "")
    return (" ".join(_SOFT.sub(" ", said.casefold()).split()), place.note, *who)


def _age(turn: Turn) -> tuple[int, int]:
    return micros(aware(turn.time)), turn.seq


class _Weaving:
    """The answer while it is made: each turn and each atom has one place at most."""

    def __init__(self, found: Sequence[Found], atoms: AtomsFound, turns: Mapping[str, Turn]) -> None:
        self.places: list[Place] = []
        self.known = dict(turns) | {one.turn.id: one.turn for one in found}
        self._atoms = atoms
        self._found = {one.turn.id: one for one in found}
        self._best = max((atom.score for atom in atoms.ranked), default=0.0)
        self._of_turn: dict[str, AtomFound] = {}
        for atom in atoms.ranked:
            for source in atom.sources:
                self._of_turn.setdefault(source, atom)
        self._placed: set[str] = set()

    def speaks(self, atom: AtomFound) -> bool:
        """Does it say what was asked, as far as its words tell?"""
        return self._best > 0 and atom.score >= SPEAKS * self._best

    def turn(self, id: str, like: Found) -> None:
        """The place of a turn, below that of what replaced its statement; an atom may speak for it."""
        if id in self._placed or id not in self.known:
            return
        self._placed.add(id)
        atom = self._of_turn.get(id)
        if atom is not None and atom.status == "superseded":
            self._instead(self._atoms.holding(atom), like)
        own = self._found.get(id, like)
        if atom is not None and atom.id not in self._placed and self.speaks(atom) and says(atom, self.known[id]):
            self.atom(atom, own, id)
        else:
            told = note(atom, self._atoms) if atom is not None and atom.status == "superseded" else ""
            turn = self.known[id]
            self.places.append(Place(turn=turn, turns=(turn,), score=own.score, parts=own.parts, note=told))

    def atom(self, atom: AtomFound, like: Found | None = None, first: str = "") -> None:
        """The place of an atom, with the turns behind it, `first` among them first."""
        if atom.id in self._placed:
            return
        self._placed.add(atom.id)
        order = sorted(atom.sources, key=lambda source: source != first)
        behind = tuple(self.known[source] for source in order if source in self.known)
        score, parts = (like.score, like.parts) if like is not None else (0.0, {})
        self.places.append(Place(atom=atom, turns=behind, score=score, parts=parts, note=note(atom, self._atoms)))

    def _instead(self, newer: AtomFound, like: Found) -> None:
        source = next((one for one in newer.sources if one in self.known), "")
        if source:
            self.turn(source, like)
        elif newer.status != "superseded":
            self.atom(newer, like)


def says(atom: AtomFound, turn: Turn) -> bool:
    """May an atom stand for one of its turns? Not for a repetition in other words: those stand in the turn alone."""
    if atom.count <= 1 or atom.sources[:1] == (turn.id,):
        return True
    words = _DAYS.sub("", atom.text.partition(": ")[2] or atom.text).strip()
    return words.casefold() in turn.text.casefold()


def alone(atoms: AtomsFound, turns: Mapping[str, Turn]) -> list[Place]:
    """Atoms by themselves, best first: their words, a little of their priority; what was superseded comes after
    what holds instead, also where no word of the query leads there."""
    best = max((atom.score for atom in atoms.ranked), default=0.0)
    left = {}
    for atom in atoms.ranked:
        words = atom.score / best if best else 0.0
        parts = {"bm25": words, "priority": PRIORITY * atom.priority / 100}
        if atom.status == "superseded":
            parts["superseded"] = -OUTDATED * sum(parts.values())
        left[atom.id] = _by_itself(atom, atoms, turns, parts)
    made: list[Place] = []
    for place in sorted(left.values(), key=lambda place: (-place.score, place.atom.n if place.atom else 0)):
        one = place.atom
        if one is None or one.id not in left:
            continue
        newer = atoms.holding(one) if one.status == "superseded" else one
        if newer.id in left and newer is not one:
            made.append(left.pop(newer.id))
        elif newer is not one and newer.status != "superseded" and newer.id not in map(_id, made):
            made.append(_by_itself(newer, atoms, turns, place.parts))
        made.append(left.pop(one.id))
    return made


def _id(place: Place) -> str:
    return place.atom.id if place.atom is not None else ""


def _by_itself(atom: AtomFound, atoms: AtomsFound, turns: Mapping[str, Turn], parts: Mapping[str, float]) -> Place:
    behind = tuple(turns[one] for one in atom.sources if one in turns)
    return Place(atom=atom, turns=behind, score=sum(parts.values()), parts=parts, note=note(atom, atoms))


def note(atom: AtomFound, atoms: AtomsFound) -> str:
    """What is to be said with an atom, so that nobody takes it for more than it is."""
    newer = atoms.holding(atom)
    return noted(atom.status, atom.reason, atom.until, atom.quarantine, newer.text if newer is not atom else "")


def noted(status: str, reason: str, until: str, quarantine: str, newer: str) -> str:
    """The standing of an atom in words; nothing for one that holds. `newer`: what stands instead."""
    if status == "quarantined":
        return f"quarantined: {quarantine}"
    if status == "superseded":
        return "superseded" + (f" on {until[:10]}" if until else "") + (f" by: {newer}" if newer else "")
    if status == "contradicted":
        return f"contradicted: {reason}" + (f": {newer}" if newer else "")
    if status == "repeated":
        return f"said before: {newer}"
    return status if status == "undone" else ""
