"""What is derived from what was said: atoms (L1), where they came from, and what is done with them."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from msgspec import Struct

AtomType: TypeAlias = Literal[
    "persona", "episodic", "instruction", "work_fact", "work_task", "work_method", "work_artifact"
]
Scope: TypeAlias = Literal["", "global", "project", "scenario"]
Section: TypeAlias = Literal["standing", "project", "identity", "preferences", "ways", "people", "tensions"]
LineKind: TypeAlias = Literal["add", "replace", "drop"]
Verb: TypeAlias = Literal["add", "supersede", "reinforce", "contradict", "none"]
ATOM_TYPES: tuple[AtomType, ...] = (
    "persona",
    "episodic",
    "instruction",
    "work_fact",
    "work_task",
    "work_method",
    "work_artifact",
)
SECTIONS: tuple[Section, ...] = ("standing", "project", "identity", "preferences", "ways", "people", "tensions")
MAX_ATOM_CHARS = 1_000
MAX_PRIORITY = 100


class Span(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an atom was said: characters `start` up to `end` of the text of the event `id`."""

    id: str
    start: int
    end: int


class Atom(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing worth keeping, near verbatim, with the exact places it came from.

    `text` stands alone: who speaks and what a pronoun means are named in it, relative times are resolved. `slot`
    names what there is one value of at a time (`user.home`, `tool.version:postgres`), `value` that value,
    normalised; both are empty where the statement has no such slot. `polarity` is 1 for "always", -1 for "never",
    0 where neither is said. `valid_from` and `valid_to` are RFC 3339 times or dates of the world, not of the log;
    `quarantine` says why an atom is kept but never recalled unless asked.
    """

    type: AtomType
    text: str
    sources: tuple[Span, ...]
    subject: str = ""
    slot: str = ""
    value: str = ""
    entities: tuple[str, ...] = ()
    priority: int = 50
    scope: Scope = ""
    polarity: int = 0
    valid_from: str = ""
    valid_to: str = ""
    language: str = ""
    quarantine: str = ""


class Operation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of the atom `atom`: it is new, it supersedes `target`, says it again, contradicts it, or nothing.

    `atom` and `target` are atom ids (`lamina.ids.atom_id`). Nothing is deleted: a superseded atom stays as history.
    """

    verb: Verb
    atom: str
    target: str = ""
    reason: str = ""


class Standing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an atom stood when a decision looked: its `status`, what it counts for or fell to (`by`), until when it
    held, and how often it was said. `missing` is the status of an atom that is not there."""

    atom: str
    status: str
    by: str = ""
    until: str = ""
    count: int = 1


class Episode(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Atoms of one session that lie together in time. `parent` is the earlier episode that it goes on from, by
    `score`; empty where it begins something. `scenario` is the id of the whole."""

    id: str
    atoms: tuple[str, ...]
    scenario: str
    parent: str = ""
    score: float = 0.0


COLD_US = 24 * 3_600 * 1_000_000
"""A scenario that nothing was added to for so long is dormant. Told by whoever reads, who has a clock."""
HALF_HEAT_US = 7 * COLD_US


def heat(*, mentions: int, sessions: int, last_us: int, now_us: int) -> float:
    """How much a scenario is on one's mind: by how often and in how many sessions it was spoken of, half of it a week
    after it last was."""
    cooled: float = 0.5 ** (max(0, now_us - last_us) / HALF_HEAT_US)
    return round(math.log2(1 + mentions + 2 * sessions) * cooled, 3)


ScenarioVerb: TypeAlias = Literal["create", "assign", "move", "merge", "split"]


class ScenarioOperation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of `episodes`: they are or join `scenario`, coming from the scenario `target` where they had one.

    A merge takes all of `target`, a split begins a scenario of its own. `reason` names no words of what was said.
    """

    verb: ScenarioVerb
    scenario: str
    episodes: tuple[str, ...]
    target: str = ""
    reason: str = ""


class LineChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of the line of the persona that says the atom `atom`.

    `replace`: it takes the place of the line of the atom `target` (its own, where only its standing is another).
    `weight` orders the lines of a section; `first_us` and `last_us` are when it was said first and last, `until` when
    it ceases to hold; `other` is the atom that speaks against it; `project` whose instruction it is. `text` is a
    model's wording, empty for the atom's.
    """

    kind: LineKind
    atom: str
    section: Section = "identity"
    target: str = ""
    reason: str = ""
    weight: int = 0
    first_us: int = 0
    last_us: int = 0
    until: str = ""
    other: str = ""
    project: str = ""
    text: str = ""
