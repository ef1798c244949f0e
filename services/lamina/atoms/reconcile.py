"""What new atoms mean for those there are: said again, superseded, contradicted, or new. Rules, pure.

Only what is clear is decided: the same words, or the same slot of the same subject. What holds is what was said
last by the time of the events, so that an older fact that comes in late is history and never wins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lamina.atoms.graph import CONTRADICT, REINFORCE, SUPERSEDE
from lamina.atoms.tables import AtomRow, ties
from lamina.knowledge import Operation

RULES = "builtin-1"


def reconcile(new: Sequence[AtomRow], known: Iterable[AtomRow]) -> tuple[Operation, ...]:
    """The operations for `new`, in their order of time, among `known` and themselves. Every new atom has one at
    least: `add` where nothing else is to be said of it."""
    here = _Here(known)
    operations: list[Operation] = []
    for atom in sorted(new, key=_when):
        own = here.operations(atom)
        operations += own or [Operation(verb="add", atom=atom.id)]
    return tuple(operations)


class _Here:
    """The atoms that stand, with what the operations so far did to them."""

    def __init__(self, known: Iterable[AtomRow]) -> None:
        self._slots: dict[tuple[str, ...], list[AtomRow]] = defaultdict(list)
        self._same: dict[str, AtomRow] = {}
        self._last: dict[str, tuple[int, int, int]] = {}
        self._below: set[str] = set()
        for atom in sorted(known, key=_when):
            if _standing(atom):
                self._take(atom, (max(atom.time_us, atom.last_us), atom.seq, atom.n))
                if any(one.verb == SUPERSEDE for one in ties(atom.effects)):
                    self._below.add(atom.id)

    def operations(self, atom: AtomRow) -> list[Operation]:
        if not _standing(atom):
            return []
        if not atom.slot or _is_past(atom):
            return self._again(atom)
        line = [one for one in self._slots[_slot(atom)] if not _is_past(one)]
        own = [one for one in line if one.said_by == atom.said_by or _joint(atom)]
        others = [one for one in line if not (one.said_by == atom.said_by or _joint(atom))]
        made = self._in_line(atom, own)
        if not any(one.verb == REINFORCE or one.target == atom.id for one in made):
            made += self._against(atom, others)
        return made

    def _again(self, atom: AtomRow) -> list[Operation]:
        """Without a slot: is it the same words as before?"""
        first = self._same.get(_key(atom))
        if first is None:
            self._take(atom, _when(atom))
            return []
        self._last[first.id] = max(self._last[first.id], _when(atom))
        return [Operation(verb=REINFORCE, atom=atom.id, target=first.id, reason="same words")]

    def _in_line(self, atom: AtomRow, own: Sequence[AtomRow]) -> list[Operation]:
        """Where the atom stands among those that fill its slot, oldest first: it says again what its neighbour in
        time says, ends what was so before it, and is ended by what came after it."""
        now = _when(atom)
        earlier = [one for one in own if self._last[one.id] <= now]
        later = [one for one in own if self._last[one.id] > now]
        before = max(earlier, key=lambda one: self._last[one.id], default=None)
        after = min(later, key=lambda one: self._last[one.id], default=None)
        for one in (before, after):
            if one is not None and one.value == atom.value:
                self._last[one.id] = max(self._last[one.id], now)
                return [Operation(verb=REINFORCE, atom=atom.id, target=one.id, reason="same value")]
        self._take(atom, now)
        made = []
        if before is not None:
            self._below.add(before.id)
            made.append(Operation(verb=SUPERSEDE, atom=atom.id, target=before.id, reason="newer"))
        if after is not None:
            self._below.add(atom.id)
            made.append(Operation(verb=SUPERSEDE, atom=after.id, target=atom.id, reason="newer"))
        return made

    def _against(self, atom: AtomRow, others: Sequence[AtomRow]) -> list[Operation]:
        """What others say of the same slot: the same counts for it, anything else speaks against it."""
        standing = [one for one in others if one.id not in self._below]
        return [
            Operation(verb=CONTRADICT, atom=atom.id, target=one.id, reason=f"{one.said_by} said otherwise")
            for one in standing
            if one.value != atom.value
        ]

    def _take(self, atom: AtomRow, last: tuple[int, int, int]) -> None:
        self._last[atom.id] = last
        self._same.setdefault(_key(atom), atom)
        if atom.slot:
            self._slots[_slot(atom)].append(atom)


def _standing(atom: AtomRow) -> bool:
    """An atom that stands for itself: neither taken out, nor quarantined, nor counted for another."""
    return not atom.removed_by and not atom.quarantine and atom.status != "repeated"


def _when(atom: AtomRow) -> tuple[int, int, int]:
    return atom.time_us, atom.seq, atom.n


def _is_past(atom: AtomRow) -> bool:
    """It says itself that it was over when it was said: history, which ends nothing."""
    return bool(atom.valid_to) and atom.valid_to[:10] < atom.time[:10]


def _joint(atom: AtomRow) -> bool:
    """What the work has come to is said by user, agent and tools alike: the last of them knows."""
    return atom.type.startswith("work_")


def _slot(atom: AtomRow) -> tuple[str, ...]:
    """One value at a time within this: a project's facts are not another project's."""
    place = atom.project if atom.scope == "project" or _joint(atom) else ""
    return atom.slot, atom.subject.casefold(), place, atom.session if atom.scope == "scenario" else ""


def _key(atom: AtomRow) -> str:
    place = atom.project if atom.scope == "project" or _joint(atom) else ""
    return "\x1f".join((atom.same, place, "" if atom.subject or _joint(atom) else atom.said_by))
