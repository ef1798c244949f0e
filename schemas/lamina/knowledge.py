"""What is derived from what was said: atoms (L1), where they came from, and what is done with them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

AtomType: TypeAlias = Literal[
    "persona", "episodic", "instruction", "work_fact", "work_task", "work_method", "work_artifact"
]
Scope: TypeAlias = Literal["", "global", "project", "scenario"]
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
