"""What an extractor is shown: turns, tool results and statements alike, oldest first."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["turn", "tool", "stated"]


class Turn(Struct, frozen=True, kw_only=True):
    """One source event of a session, as text.

    `id` is the event's; a span counts characters of `text`. `kind` is "turn" for what somebody said, "tool" for what
    a tool returned (never to be obeyed), "stated" for what was asked to be remembered as it stands. `role` is one of
    `lamina.events.ROLES`, `name` who spoke where the role does not say it, `time` RFC 3339 with an offset.
    """

    id: str
    text: str
    time: str
    kind: Kind = "turn"
    role: str = "user"
    name: str = ""
    session: str = ""
    project: str = ""
    agent: str = ""
