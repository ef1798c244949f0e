"""What `replay rederive`, `diff`, `adopt` and `drop` tell."""

from __future__ import annotations

from msgspec import Struct


class Rederived(Struct, frozen=True, kw_only=True):
    """A shadow as it stands: `seq` is the last event of the log that it saw, `made` how many decisions this run made,
    `waiting` how many turns have no outcome yet."""

    space: str
    name: str
    seq: int
    decisions: int
    made: int
    atoms: int
    tokens: int
    waiting: int
    settings: dict[str, str]
    seconds: float


class Evidence(Struct, frozen=True, kw_only=True):
    """Where an atom was said: the event, and its words."""

    id: str
    text: str


class AtomChange(Struct, frozen=True, kw_only=True):
    """`what`: gained, lost or changed; `before` and `after` are texts of atoms that stand."""

    what: str
    type: str
    before: str = ""
    after: str = ""
    evidence: tuple[Evidence, ...] = ()


class QueryChange(Struct, frozen=True, kw_only=True):
    """A recorded question, and the texts that only one of the two answers has."""

    query: str
    overlap: float
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()


class Cost(Struct, frozen=True, kw_only=True):
    """What it took to derive: decisions, tokens of models, and how long they worked."""

    by: tuple[str, ...]
    decisions: int
    tokens: int
    seconds: float


class Difference(Struct, frozen=True, kw_only=True):
    """What a shadow would change. `behind`: events that came since it was brought up to the log."""

    space: str
    name: str
    same: int
    gained: int
    lost: int
    changed: int
    atoms: tuple[AtomChange, ...]
    queries: tuple[QueryChange, ...]
    asked: int
    before: Cost
    after: Cost
    behind: int


class Adopted(Struct, frozen=True, kw_only=True):
    """`undone` decisions hold no more, `decisions` hold instead; `event` names both as their cause."""

    space: str
    name: str
    event: str
    undone: int
    decisions: int
    atoms: int


class Dropped(Struct, frozen=True, kw_only=True):
    space: str
    name: str
