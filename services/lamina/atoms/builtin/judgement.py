"""What the rules of a language say of one sentence."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from lamina.knowledge import AtomType, Scope

Speaker: TypeAlias = Literal["user", "person", "assistant"]
"""Who says it: the user of an agent, a named person among others, or the agent."""


class Judgement(Struct, frozen=True, kw_only=True):
    """The sentence is worth keeping, as this. `past`: it tells of the past, for dates that could lie on either side."""

    type: AtomType
    priority: int = 50
    scope: Scope = ""
    polarity: int = 0
    slot: str = ""
    value: str = ""
    past: bool = False


def of_work(type: AtomType) -> bool:
    return type.startswith("work_")
