"""Extraction by a language model where one is configured, by the rules where it may not be asked or keeps failing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from lamina.atoms import model
from lamina.atoms.act import BuiltinAct, kept
from lamina.atoms.decide import Extraction, Reconciliation
from lamina.atoms.reconcile import RULES, reconcile
from lamina.atoms.reconcile_model import candidates, merged, unclear
from lamina.errors import Unavailable
from lamina.ids import untoken
from lamina.llm import AskTooLarge, BadAnswer, Model, ModelError, Refused, Source
from lamina.llm.budget import day_of
from lamina.runtime import Wanted
from lamina.runtime.spec import Made, Unmade
from lamina.store import View

A = TypeVar("A", model.Extraction, model.Reconciliation)
BAD_ANSWERS = 3
"""After so many answers that cannot be used the rules take the window: no turn waits for a model to see reason."""
_UNUSABLE = (BadAnswer, Refused, AskTooLarge)


class _Failing(Struct):
    """The window of a space whose answers were unusable, and how many of them."""

    first: str = ""
    answers: int = 0


class ModelAct:
    """One window at a time. A model that is not there is waited for; what it was paid is told with every failure."""

    def __init__(self, source: Source, builtin: BuiltinAct) -> None:
        self._source = source
        self._builtin = builtin
        self._failing: dict[str, _Failing] = {}

    async def __call__(self, wanted: Wanted, view: View) -> Made:
        space = view.link.parent.parent.name
        if isinstance(wanted.ask, Reconciliation):
            return await self._reconciled(wanted, wanted.ask, space)
        ask: Extraction = wanted.ask
        window = ask.windows[0]
        needed = model.needed(window.turns, window.context)
        chosen = self._chosen(space, wanted.inputs[0], ask.spent_today, needed)
        if chosen is None:
            return await self._builtin(wanted, view)
        found = await self._asked(space, wanted.inputs[0], model.extract(window.turns, window.context, chosen))
        data = {
            "windows": (len(window.turns),),
            "extractor": model.NAME,
            "version": model.VERSION,
            "atoms": tuple(kept(found.atoms)),
            "model": found.model,
            "prompt_sha256": found.prompt_sha256,
            "raw": found.raw,
            "duration_ms": found.duration_ms,
            "dropped": dict(found.dropped),
        }
        return Made("atoms.extracted", data, tokens=found.tokens)

    async def _reconciled(self, wanted: Wanted, ask: Reconciliation, space: str) -> Made:
        """What is clear is decided by the rules; of the rest the model says what it is to atoms alike."""
        decided = await asyncio.to_thread(reconcile, ask.new, ask.known)
        fresh = unclear(ask.new, decided)
        known = candidates(ask.alike, decided)
        chosen = None
        if fresh and known:
            chosen = self._chosen(space, wanted.inputs[0], ask.spent_today, model.reconciling_needs(fresh, known))
        if chosen is None:
            return Made("atoms.reconciled", {"rules": RULES, "operations": decided})
        found = await self._asked(space, wanted.inputs[0], model.reconcile(fresh, known, chosen))
        data = {
            "rules": RULES,
            "operations": merged(decided, found.operations, {row.id: row for row in (*ask.new, *ask.alike)}),
            "model": found.model,
            "prompt_sha256": found.prompt_sha256,
            "raw": found.raw,
            "duration_ms": found.duration_ms,
            "dropped": dict(found.dropped),
        }
        return Made("atoms.reconciled", data, tokens=found.tokens)

    def _chosen(self, space: str, first: str, spent_today: int, needed: int) -> Model | None:
        """The model, unless its budget is used or its answers on this have been unusable too often."""
        failing = self._failing.get(space, _Failing())
        if failing.first == first and failing.answers >= BAD_ANSWERS:
            return None
        now = datetime.now(UTC)
        return model.choose(self._source, space=untoken(space), spent_today=spent_today, needed=needed, now=now).model

    async def _asked(self, space: str, first: str, asking: Awaitable[A]) -> A:
        """What the model answers, counted; an error is a failed attempt that knows its cost."""
        day = day_of(datetime.now(UTC))
        try:
            found = await asking
        except ModelError as error:
            self._source.meter.add(untoken(space), day, error.tokens)
            self._note(space, first, error)
            raise Unmade(_worth_waiting(error), tokens=error.tokens) from error
        self._failing.pop(space, None)
        self._source.meter.add(untoken(space), day, found.tokens)
        return found

    def _note(self, space: str, first: str, error: ModelError) -> None:
        if isinstance(error, _UNUSABLE):
            known = self._failing.get(space, _Failing())
            answers = BAD_ANSWERS if not isinstance(error, BadAnswer) else 1
            self._failing[space] = _Failing(first, answers + (known.answers if known.first == first else 0))


def _worth_waiting(error: ModelError) -> Exception:
    """Nothing that a model does ends the waiting of a turn: a wrong key is set right, a refusal left to the rules."""
    return Unavailable(f"{type(error).__name__}: {error}")
