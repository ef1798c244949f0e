"""When a statement says that something was, is or will be."""

from __future__ import annotations

from datetime import date

from lamina.atoms.builtin import dates_cjk, dates_en
from lamina.atoms.builtin.language import Language
from lamina.atoms.builtin.spans_of_time import When

MAX_PHRASES = 8


def find(text: str, language: Language, base: date, past: bool) -> tuple[When, ...]:
    """The time phrases of the sentence `text`, said on the day `base`, in order and at most `MAX_PHRASES`.

    `past` says whether the sentence tells of the past: on which side of `base` a bare weekday or month lies.
    """
    found = dates_en.find(text, base, past) if language == "en" else dates_cjk.find(text, language, base, past)
    return tuple(when for _, when in zip(range(MAX_PHRASES), found, strict=False))


def resolved(text: str, phrases: tuple[When, ...]) -> str:
    """`text` with the days that its relative phrases mean in brackets behind them."""
    parts: list[str] = []
    at = 0
    for when in phrases:
        if not when.absolute:
            parts += [text[at : when.end], f" ({when.text()})"]
            at = when.end
    return "".join([*parts, text[at:]])
