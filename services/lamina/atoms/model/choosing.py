"""The model, or the built-in rules: whichever may be asked now."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from lamina.llm import Model, Source
from lamina.llm.budget import day_of, refused


class Choice(Struct, frozen=True):
    """`model` is None where the built-in rules are to be used; `why` says why."""

    model: Model | None
    why: str = ""


def choose(source: Source, *, space: str, spent_today: int, needed: int, now: datetime) -> Choice:
    """Who extracts now. `spent_today`: the tokens of this space on the day (UTC) of `now`, as its view has them, of
    answers and of failures; `needed`: what may be spent now (`extractor.needed`)."""
    if source.model is None:
        return Choice(None, "no model is configured")
    spent = source.meter.note(space, day_of(now), spent_today)
    why = refused(source.config, spent, needed)
    return Choice(None, why) if why else Choice(source.model)
