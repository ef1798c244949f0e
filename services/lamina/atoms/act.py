"""Where decisions over atoms are made: the extractor is asked, the rules of reconciliation are applied."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from lamina.atoms.decide import Extraction, Reconciliation, Window
from lamina.atoms.reconcile import RULES, reconcile
from lamina.atoms.turns import Turn
from lamina.errors import LaminaError
from lamina.knowledge import Atom
from lamina.runtime import Wanted
from lamina.runtime.spec import Made, Unmade
from lamina.store import View

Extract: TypeAlias = Callable[[Sequence[Turn], Sequence[Turn]], Sequence[Atom]]
"""(a window, the turns before it) -> its atoms. Pure; whatever it raises, it raises again."""
MOST_BYTES = 200_000
"""So much of atoms stands in one event; further windows are left to the next."""
MOST_ATOMS = 64
"""Of one window; beyond them those of least priority are left out."""
RAISED = (LaminaError, msgspec.MsgspecError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


class BuiltinAct:
    """Extraction by rules, on a thread of its own, so that nothing waits for it; reconciliation beside it."""

    def __init__(self, extract: Extract, *, name: str, version: str) -> None:
        self._extract = extract
        self._name = name
        self._version = version

    async def __call__(self, wanted: Wanted, view: View) -> Made:
        if isinstance(wanted.ask, Reconciliation):
            return await reconciliation(wanted.ask)
        started = time.monotonic()
        atoms, windows = await asyncio.to_thread(self._over, wanted.ask)
        data = {
            "windows": tuple(len(window.turns) for window in windows),
            "extractor": self._name,
            "version": self._version,
            "atoms": tuple(atoms),
            "duration_ms": round((time.monotonic() - started) * 1000),
        }
        return Made("atoms.extracted", data, inputs=_inputs(windows))

    def _over(self, ask: Extraction) -> tuple[list[Atom], list[Window]]:
        """The atoms of the first windows, up to one that fails or makes the event too large."""
        atoms: list[Atom] = []
        done: list[Window] = []
        left = MOST_BYTES
        for window in ask.windows:
            try:
                found = kept(self._extract(window.turns, window.context))
            except RAISED as error:
                if not done:
                    raise Unmade(error, inputs=_inputs([window])) from error
                break
            left -= len(msgspec.json.encode(found))
            if done and left < 0:
                break
            atoms += found
            done.append(window)
        return atoms, done


async def reconciliation(ask: Reconciliation) -> Made:
    """The rules over new atoms, as a decision."""
    operations = await asyncio.to_thread(reconcile, ask.new, ask.known)
    data: dict[str, Any] = {"rules": RULES, "operations": operations}
    return Made("atoms.reconciled", data)


def kept(atoms: Sequence[Atom]) -> list[Atom]:
    """At most `MOST_ATOMS`, those of most priority, in their order."""
    if len(atoms) <= MOST_ATOMS:
        return list(atoms)
    order = sorted(range(len(atoms)), key=lambda index: (-atoms[index].priority, index))
    return [atoms[index] for index in sorted(order[:MOST_ATOMS])]


def _inputs(windows: Sequence[Window]) -> tuple[str, ...]:
    return tuple(turn.id for window in windows for turn in window.turns)
