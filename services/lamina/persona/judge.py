"""Whether an atom is a line of the persona, and where: from how it stands alone, in whatever order. Pure."""

from __future__ import annotations

from msgspec import Struct

from lamina.knowledge import Section
from lamina.persona.people import is_of_others
from lamina.persona.select import FIRM

ENOUGH = 2
"""Occasions (other days, other sessions) after which what was never stated as a rule or fact is a pattern."""
STATED = 80
"""The priority from which on something was asked to be remembered."""
CLEAR = 55
"""The priority from which on what somebody says of themselves is clear enough to be taken at once."""
_STANDS = ("active", "contradicted")
_EVERY_OCCASION, _MOST_OCCASIONS = 3, 6
_AGENTS = ("assistant", "tool", "system")


class Standing(Struct, frozen=True, kw_only=True):
    """An atom as the view of the atoms has it. `near` are those it is tied to, `occasions` those it was said on."""

    id: str
    type: str
    scope: str
    polarity: int
    subject: str
    slot: str
    value: str
    priority: int
    quarantine: str
    said_by: str
    status: str
    by: str
    until: str
    count: int
    first_us: int
    last_us: int
    session: str
    project: str
    time: str
    text: str
    near: tuple[str, ...] = ()
    occasions: int = 1


class Verdict(Struct, frozen=True):
    """A line: where, how much it counts, and why it is one."""

    section: Section
    weight: int
    reason: str


def judge(atom: Standing) -> Verdict | str:
    """The line that an atom gives, or why it gives none."""
    if atom.quarantine or atom.status not in _STANDS:
        return atom.status if atom.status not in _STANDS else "quarantined"
    if atom.type == "instruction":
        return _instruction(atom)
    if atom.slot.startswith("user."):
        return _placed(atom, "identity" if _own(atom) else "people", atom.priority + 15, "stated")
    if atom.type == "work_method":
        if atom.priority >= STATED:
            return _placed(atom, "ways", atom.priority, "stated")
        return _pattern(atom, "ways")
    if atom.type != "persona":
        return "it is none of a person"
    if atom.slot.startswith("preference"):
        return _placed(atom, "preferences", atom.priority, "stated")
    section: Section = "people" if not _own(atom) or is_of_others(atom.text) else "identity"
    if atom.priority >= CLEAR:
        return _placed(atom, section, atom.priority, "stated")
    return _pattern(atom, section)


def _instruction(atom: Standing) -> Verdict | str:
    """A rule of everywhere or of a project holds at once. One of a scene never leaves it; a request that was bound to
    nothing is a rule once it was made again on another occasion."""
    if atom.said_by in _AGENTS:
        return "nobody that may instruct said it"
    if atom.value == "any":
        return "it takes a rule back"
    if atom.scope == "scenario":
        return "it holds in its scene alone"
    if atom.scope == "":
        return _pattern(atom, "standing")
    return _placed(atom, "project" if atom.scope == "project" else "standing", max(atom.priority, FIRM), "instructed")


def _pattern(atom: Standing, section: Section) -> Verdict | str:
    if atom.occasions < ENOUGH:
        return f"said on {atom.occasions} of {ENOUGH} occasions"
    weight = min(atom.priority, FIRM - 1 - _EVERY_OCCASION * _MOST_OCCASIONS)
    return _placed(atom, section, weight, f"said on {atom.occasions} occasions")


def _placed(atom: Standing, section: Section, weight: int, reason: str) -> Verdict:
    if atom.status == "contradicted":
        return Verdict("tensions", weight, "contradicted")
    return Verdict(section, weight + _EVERY_OCCASION * min(atom.occasions - 1, _MOST_OCCASIONS), reason)


def _own(atom: Standing) -> bool:
    return atom.subject in ("", "user")
