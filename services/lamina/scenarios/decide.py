"""When scenarios are arranged again: a little after the atoms, not too often, not too late. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from lamina.runtime import Due, Wanted

ARRANGE: Final = "scenarios.arrange"
AFTER_US = 10 * 1_000_000
"""So long after the last change of the atoms."""
APART_US = 900 * 1_000_000
"""So long after the last arrangement, at least."""
LATE_US = 3_600 * 1_000_000
"""No later than this after the first change. What was said longer ago is late as it comes: no import waits."""


class State(Struct, frozen=True):
    """What waits: events that may have changed atoms, the arrival of the first and the last, and whether one of them
    cannot wait (its session has ended, or it was late as it came). `n` counts atoms, `arranged_us` is when the last
    decision came."""

    n: int = 0
    pending: int = 0
    first_us: int = 0
    last_us: int = 0
    urgent: bool = False
    arranged_us: int = 0


def decide(state: State, now_us: int) -> Wanted | Due | None:
    """An arrangement where it is due; `plan` finds its inputs."""
    if not state.pending:
        return None
    at_us = min(max(state.last_us + AFTER_US, state.arranged_us + APART_US), state.first_us + LATE_US)
    if state.urgent or now_us >= at_us:
        return Wanted(ARRANGE, ())
    return Due(at_us)
