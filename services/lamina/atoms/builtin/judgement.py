"""What the rules of a language say of one sentence."""

from __future__ import annotations

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
