"""Upcasters: pure steps that lift an event's data from the version it was written in to today's.

Stored bytes are never rewritten, so every step stays here for ever; `tests/golden` holds one file per type
and version, and all of them must decode to today's structs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lamina.errors import Invalid

Step = Callable[[dict[str, Any]], dict[str, Any]]

STEPS: Mapping[tuple[str, int], Step] = {}
"""(type, v) -> the step from version v to v + 1."""

VERSIONS: Mapping[str, int] = {}
"""Today's version of each type; a type that is not named here is at version 1."""


def lift(
    type: str,
    v: int,
    data: Any,
    *,
    steps: Mapping[tuple[str, int], Step] = STEPS,
    versions: Mapping[str, int] = VERSIONS,
) -> dict[str, Any]:
    """`data` of version `v` in the shape of today's version of `type`.

    `Invalid` for a version from the future (upgrade Lamina) and for one that no step leads away from.
    """
    if not isinstance(data, dict):
        raise Invalid(f"the data of {type} must be an object")
    now = versions.get(type, 1)
    if v > now or v < 1:
        raise Invalid(f"{type} version {v} is not known here (today's is {now}): upgrade lamina to read it")
    lifted: dict[str, Any] = dict(data)
    for at in range(v, now):
        step = steps.get((type, at))
        if step is None:
            raise Invalid(f"no step leads from {type} version {at} to {at + 1}")
        lifted = step(lifted)
    return lifted
