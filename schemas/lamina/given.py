"""What is said between a client and the query service of what a session was given."""

from __future__ import annotations

from msgspec import Struct, field


class Give(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`give`: these items (id -> tokens) and this persona (a digest) were put before the model in `session`; answered
    by `Given`, all that was put there by now. Without items and persona it only asks."""

    session: str
    items: dict[str, int] = field(default_factory=dict)
    persona: str = ""


class Given(Struct, frozen=True, kw_only=True):
    """What a session was given: the last items, and the last persona. Best effort: a query service forgets it when it
    ends, and each knows what went through it."""

    items: dict[str, int]
    persona: str = ""
