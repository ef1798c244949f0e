"""What the rules of a language say of one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lamina.knowledge import AtomType, Scope

Speaker: TypeAlias = Literal["user", "person", "assistant"]
"""Who says it: the user of an agent, a named person among others, or the agent."""


class Judgement(Struct, frozen=True, kw_only=True):
    """The sentence is worth keeping, as this. `past`: it tells of the past, for dates on either side of today."""

    type: AtomType
    priority: int = 50
    scope: Scope = ""
    polarity: int = 0
    slot: str = ""
    value: str = ""
    past: bool = False


Slots: TypeAlias = Sequence[tuple[re.Pattern[str], str]]
"""A pattern whose first group that took part is the value, and the slot of that value."""
_MOVES = ("user.home", "user.employer")


def instruction(*, scene: bool, project: bool, never: bool) -> Judgement:
    """A standing rule: bound to a scene, else to the project, else to nothing.

    Within a project a rule is the project's, unless it names no project and is about the agent itself: how it talks,
    what it asks first, what it keeps to itself.
    """
    scope: Scope = "scenario" if scene else "project" if project else "global"
    return Judgement(type="instruction", priority=90, scope=scope, polarity=-1 if never else 1)


def slotted(sentence: str, slots: Slots, *, dated: bool, past: bool) -> Judgement | None:
    """The first of `slots` that the sentence fills. A dated change of home or employer is something that happened."""
    for pattern, slot in slots:
        found = pattern.search(sentence)
        if found:
            value = next(group for group in found.groups() if group)
            happened = dated and slot in _MOVES
            return Judgement(
                type="episodic" if happened else "persona", priority=70, slot=slot, value=value, past=past
            )
    return None


def favourite(found: re.Match[str]) -> Judgement:
    """What somebody likes best of a kind (`what`): one thing at a time (`one`), so that another takes its place."""
    what, one = (" ".join(found[name].casefold().split()) for name in ("what", "one"))
    return Judgement(type="persona", priority=60, slot=f"preference:favourite {what}", value=one)
