"""Extraction by a language model where one is configured, by the rules where it may not be asked or keeps failing."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from lamina.atoms import model
from lamina.atoms.act import BuiltinAct, kept, reconciliation
from lamina.atoms.decide import Extraction, Reconciliation
from lamina.errors import Unavailable
from lamina.ids import untoken
from lamina.llm import AskTooLarge, BadAnswer, ModelError, Refused, Source
from lamina.llm.budget import day_of
from lamina.runtime import Wanted
from lamina.runtime.spec import Made, Unmade
from lamina.store import View

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
        if isinstance(wanted.ask, Reconciliation):
            return await reconciliation(wanted.ask)
        space = view.link.parent.parent.name
        ask: Extraction = wanted.ask
        window = ask.windows[0]
        now = datetime.now(UTC)
        failing = self._failing.get(space, _Failing())
        chosen = model.choose(
            self._source,
            space=untoken(space),
            spent_today=ask.spent_today,
            needed=model.needed(window.turns, window.context),
            now=now,
        )
        if chosen.model is None or (failing.first == wanted.inputs[0] and failing.answers >= BAD_ANSWERS):
            return await self._builtin(wanted, view)
        try:
            found = await model.extract(window.turns, window.context, chosen.model)
        except ModelError as error:
            self._source.meter.add(untoken(space), day_of(now), error.tokens)
            self._note(space, wanted.inputs[0], error)
            raise Unmade(_worth_waiting(error), tokens=error.tokens) from error
        self._failing.pop(space, None)
        self._source.meter.add(untoken(space), day_of(now), found.tokens)
        data = {
            "windows": (len(window.turns),),
            "extractor": model.NAME,
            "version": model.VERSION,
            "atoms": tuple(kept(found.atoms)),
            "model": found.model,
            "prompt_sha256": found.prompt_sha256,
            "raw": found.raw,
            "duration_ms": found.duration_ms,
        }
        return Made("atoms.extracted", data, tokens=found.tokens)

    def _note(self, space: str, first: str, error: ModelError) -> None:
        if isinstance(error, _UNUSABLE):
            known = self._failing.get(space, _Failing())
            answers = BAD_ANSWERS if not isinstance(error, BadAnswer) else 1
            self._failing[space] = _Failing(first, answers + (known.answers if known.first == first else 0))


def _worth_waiting(error: ModelError) -> Exception:
    """Nothing that a model does ends the waiting of a turn: a wrong key is set right, a refusal left to the rules."""
    return Unavailable(f"{type(error).__name__}: {error}")
