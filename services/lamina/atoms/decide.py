"""What the atoms service would decide next: reconcile what was extracted, extract what is due. Pure."""

from __future__ import annotations

from msgspec import Struct

from lamina.atoms.derive import EXTRACT, RECONCILE
from lamina.atoms.tables import AtomRow
from lamina.atoms.turns import Turn
from lamina.atoms.work import State
from lamina.runtime import Due, Wanted


class Window(Struct, frozen=True):
    """Turns that are looked at together; `context` are those before them, never a source."""

    turns: tuple[Turn, ...]
    context: tuple[Turn, ...] = ()


class Extraction(Struct, frozen=True):
    """What an extraction is asked: some windows of a space; `spent_today` are the tokens of its day (UTC)."""

    windows: tuple[Window, ...]
    spent_today: int = 0


class Reconciliation(Struct, frozen=True):
    """New atoms, and those there are that may say the same or something else about the same.

    `alike` are those of like words, for a model alone; `spent_today` are the tokens of the space's day (UTC).
    """

    new: tuple[AtomRow, ...]
    known: tuple[AtomRow, ...]
    alike: tuple[AtomRow, ...] = ()
    spent_today: int = 0


def decide(state: State, now_us: int) -> Wanted | Due | None:
    """Reconciliation first, so that nothing is long known twice; `plan` finds the inputs, or that there are none."""
    if state.unreconciled:
        return Wanted(RECONCILE, ())
    if state.due or (state.open and state.idle_us <= now_us):
        return Wanted(EXTRACT, ())
    return Due(state.idle_us) if state.open else None
