"""Atoms and what they do to one another: ties made, ties undone, and what each atom's standing is after it. Pure.

An atom's standing is never set, it follows from its ties; so taking ties away brings back what was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from lamina.atoms.tables import AtomRow, Tie, got, json, put, ties
from lamina.runtime import Change, Drop, Put, Rows

SUPERSEDE: Final = "supersede"
REINFORCE: Final = "reinforce"
CONTRADICT: Final = "contradict"
VERBS = (SUPERSEDE, REINFORCE, CONTRADICT)
MOST_TIES = 64
"""So many ties of a kind but supersession an atom keeps; of what is said again and again the rest is counted."""


class Graph:
    """The atoms that one event touches; `changes` are their rows after it."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known: dict[str, AtomRow | None] = {}
        self._touched: dict[str, None] = {}
        self._gone: list[AtomRow] = []

    def get(self, id: str) -> AtomRow | None:
        if id not in self._known:
            self._known[id] = got(self._rows, AtomRow, id)
        return self._known[id]

    def put(self, atom: AtomRow) -> None:
        self._known[atom.id] = atom
        self._touched[atom.id] = None

    def tie(self, verb: str, actor: str, target: str, decision: str, reason: str = "") -> None:
        """Let `actor` do `verb` to `target`. Nothing where one of them is gone or the tie is there already."""
        a, t = self.get(actor), self.get(target)
        if a is None or t is None or actor == target or verb not in VERBS or a.removed_by or t.removed_by:
            return
        acts, effects = ties(a.acts), ties(t.effects)
        if any(one.verb == verb and one.other == target for one in acts):
            return
        full = verb != SUPERSEDE and sum(one.verb == verb for one in effects) >= MOST_TIES
        if full and verb == CONTRADICT:
            return
        self.put(replace(a, acts=json((*acts, Tie(verb, target, decision, reason)))))
        if full:
            self.put(replace(t, more=t.more + 1))
        else:
            self.put(replace(t, effects=json((*effects, Tie(verb, actor, decision, reason)))))

    def untie(self, decision: str, ids: Sequence[str]) -> None:
        """Take away every tie that `decision` made between these atoms and others."""
        pairs: dict[tuple[str, str], None] = {}
        for atom in filter(None, map(self.get, ids)):
            pairs |= {(atom.id, one.other): None for one in ties(atom.acts) if one.decision == decision}
            pairs |= {(one.other, atom.id): None for one in ties(atom.effects) if one.decision == decision}
        for actor, target in pairs:
            self._cut(target, actor, decision)
            self._let_go(actor, target, decision)

    def remove(self, id: str, by: str, *, erase: bool = False) -> None:
        """Take an atom out: undone by the event `by`, or with `erase` for good. What it did is as if it had never
        been: what it superseded comes back, or falls to what superseded it; the first atom that said it again
        takes its place."""
        atom = self.get(id)
        if atom is None or (atom.removed_by and not erase):
            return
        acts, effects = ties(atom.acts), ties(atom.effects)
        for one in acts:
            self._cut(one.other, id)
        for one in effects:
            self._let_go(one.other, id)
        self.put(replace(atom, acts="[]", effects="[]", removed_by=by))
        self._bequeath(acts, effects)
        if erase:
            self._known[id] = None
            del self._touched[id]
            self._gone.append(atom)

    def changes(self) -> list[Change]:
        """The rows of every touched atom, with their standing; of those that were erased, nothing is left."""
        for id in list(self._touched):  # an atom's standing may hang on those that contradict or repeat it
            atom = self.get(id)
            for one in (*ties(atom.acts), *ties(atom.effects)) if atom else ():
                if one.verb != SUPERSEDE:
                    self._touched[one.other] = None
        standing = {id: self._standing(atom) for id in self._touched if (atom := self.get(id)) is not None}
        self._known |= standing
        made: list[Change] = [put(self._disputed(atom)) for atom in standing.values()]
        for atom in self._gone:
            made += [Drop("atoms", (atom.id,)), Drop("atoms_fts", (atom.n,))]
        return made

    def _cut(self, target: str, actor: str, decision: str = "") -> None:
        """Take what `actor` does (by `decision`, or at all) from the effects of `target`."""
        atom = self.get(target)
        if atom is not None:
            effects = ties(atom.effects)
            kept = [one for one in effects if one.other != actor or decision not in ("", one.decision)]
            counted = len(kept) == len(effects) and atom.more > 0
            self.put(replace(atom, effects=json(kept), more=atom.more - counted))

    def _let_go(self, actor: str, target: str, decision: str = "") -> None:
        """Take what is done to `target` (by `decision`, or at all) from the acts of `actor`."""
        atom = self.get(actor)
        if atom is not None:
            kept = [one for one in ties(atom.acts) if one.other != target or decision not in ("", one.decision)]
            self.put(replace(atom, acts=json(kept)))

    def _bequeath(self, acts: Sequence[Tie], effects: Sequence[Tie]) -> None:
        again = [one for one in effects if one.verb == REINFORCE and self.get(one.other) is not None]
        if again:
            heir = min(again, key=lambda one: self._age(one.other)).other
            for one in acts:
                self.tie(one.verb, heir, one.other, one.decision, one.reason)
            for one in effects:
                self.tie(one.verb, one.other, heir, one.decision, one.reason)
            return
        for above in effects:
            for below in acts:
                if above.verb == below.verb == SUPERSEDE:
                    self.tie(SUPERSEDE, above.other, below.other, above.decision, above.reason)

    def _age(self, id: str) -> tuple[int, int]:
        atom = self.get(id)
        return (atom.time_us, atom.n) if atom is not None else (0, 0)

    def _standing(self, atom: AtomRow) -> AtomRow:
        """What follows from the ties, but for contradictions."""
        effects = ties(atom.effects)
        again = [other for one in effects if one.verb == REINFORCE and (other := self.get(one.other))]
        times = [atom.time_us, *(other.time_us for other in again)]
        status, by, reason, until = "active", "", "", atom.valid_to
        above = [(other, one) for one in effects if one.verb == SUPERSEDE and (other := self.get(one.other))]
        same = next((one for one in ties(atom.acts) if one.verb == REINFORCE), None)
        if atom.removed_by:
            status, by = "undone", atom.removed_by
        elif atom.quarantine:
            status, reason = "quarantined", atom.quarantine
        elif same is not None:
            status, by, reason = "repeated", same.other, same.reason
        elif above:
            other, one = min(above, key=lambda pair: (pair[0].time_us, pair[0].n))
            status, by, reason, until = "superseded", other.id, one.reason, other.valid_from or other.time
        return replace(
            atom,
            status=status,
            by=by,
            reason=reason,
            until=until,
            count=1 + len(again) + atom.more,
            first_us=min(times),
            last_us=max(times),
        )

    def _disputed(self, atom: AtomRow) -> AtomRow:
        """An active atom that another active one speaks against is marked: which is right is not guessed."""
        if atom.status != "active":
            return atom
        for one in (*ties(atom.acts), *ties(atom.effects)):
            other = self.get(one.other) if one.verb == CONTRADICT else None
            if other is not None and other.status in ("active", "contradicted"):
                return replace(atom, status="contradicted", by=other.id, reason=one.reason)
        return atom


def new(atom: AtomRow, terms: Sequence[str]) -> Put:
    """The index row of a new atom."""
    return Put("atoms_fts", (atom.n, " ".join(terms)))
