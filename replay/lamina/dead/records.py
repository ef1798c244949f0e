"""What the verb `dead` tells of."""

from __future__ import annotations

from msgspec import Struct


class Dead(Struct, frozen=True, kw_only=True):
    """An event that `service` could not take, with the reason. `id` names it for retry and drop: its event's, or one
    made of its bytes where it is no event (`kind` is then "malformed")."""

    space: str
    service: str
    seq: int
    id: str
    kind: str
    error: str
    size_bytes: int


class Settled(Struct, frozen=True, kw_only=True):
    """What became of a parked event: `taken` (it is parked no more) or still `parked`, with the reason of now."""

    space: str
    service: str
    id: str
    kind: str
    outcome: str
    error: str = ""
