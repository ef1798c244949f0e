"""What the persona service would decide next: a revision, once what it is about has been reconciled. Pure."""

from __future__ import annotations

from msgspec import Struct

from lamina.persona.fold import REVISE
from lamina.persona.work import State
from lamina.runtime import Due, Wanted

PATIENCE_US = 10_000_000
"""So long a revision waits for the reconciliation of what was extracted."""


class Ask(Struct, frozen=True):
    """These atoms may stand otherwise than before (`whole`: any of them), after the event at `seq`."""

    atoms: tuple[str, ...]
    whole: bool
    seq: int


def decide(state: State, now_us: int) -> Wanted | Due | None:
    """Nothing is pending: none. `plan` finds the inputs."""
    if not state.pending:
        return None
    if state.unreconciled and now_us < state.pending_us + PATIENCE_US:
        return Due(state.pending_us + PATIENCE_US)
    return Wanted(REVISE, ())
