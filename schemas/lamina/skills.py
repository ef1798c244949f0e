"""What is asked and told of skills: procedures that worked, each a file in the common format of agent skills."""

from __future__ import annotations

from msgspec import Struct

from lamina.records import AsOf


class Skills(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`skills`: those of the space, the last used first; one of them, with its text, where `name` says so."""

    name: str = ""
    limit: int = 100
    as_of: AsOf | None = None


class SkillInfo(Struct, frozen=True, kw_only=True):
    """`path` is that of its file in the folder of the space, `scenario` the situation that it comes from."""

    name: str
    title: str
    description: str
    steps: int
    project: str
    last: str
    path: str
    scenario: str
    text: str = ""


class SkillsAre(Struct, frozen=True, kw_only=True):
    skills: tuple[SkillInfo, ...]
    more: bool
