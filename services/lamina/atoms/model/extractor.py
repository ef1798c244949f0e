"""Atoms by a model: asked once for a window, and believed as far as code can check."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from lamina.atoms.model import prompt, schema
from lamina.atoms.model.reading import read
from lamina.atoms.model.validate import Checker
from lamina.atoms.turns import Turn
from lamina.knowledge import Atom
from lamina.llm import Ask, Model
from lamina.tokens import count

NAME = "model"
VERSION = prompt.VERSION
MAX_ANSWER_TOKENS = 4_096
MAX_RAW_CHARS = 60_000
"""Of a longer answer, which no window needs, only the beginning is kept."""


class Extraction(Struct, frozen=True, kw_only=True):
    """What a model made of a window.

    `dropped` counts what was not believed: items by their reason, `part:<what>` for a part of an atom that was left
    out, `cut` where the answer ran out of tokens (whole items before that are kept), `shortened` for turns of which
    the model did not see all. `raw` is the answer as received.
    """

    atoms: tuple[Atom, ...] = ()
    model: str = ""
    prompt_sha256: str = ""
    raw: str = ""
    tokens: int = 0
    duration_ms: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)


async def extract(window: Sequence[Turn], context: Sequence[Turn], model: Model) -> Extraction:
    """The atoms of `window`. `context` are the turns before it: read for what is meant, never a source.

    Raises a `ModelError`: `BadAnswer` (transient) where the answer cannot be read or ends without need, else what
    asking raised. Its `tokens` were spent. A window without text costs nothing.
    """
    if not any(turn.text.strip() for turn in window):
        return Extraction()
    begun = time.monotonic_ns()
    asked = prompt.extraction(window, context)
    ask = Ask(system=asked.system, user=asked.user, name="atoms", schema=schema.ATOMS, max_tokens=MAX_ANSWER_TOKENS)
    answer = await model.ask(ask)
    found = read(answer, "atoms")
    checker = Checker(window, context)
    atoms = checker.atoms(found.items)
    checker.dropped.update({"malformed": found.doubtful, "cut": int(found.cut), "shortened": asked.shortened})
    return Extraction(
        atoms=atoms,
        model=answer.model,
        prompt_sha256=asked.sha256,
        raw=answer.text[:MAX_RAW_CHARS],
        tokens=answer.tokens,
        duration_ms=(time.monotonic_ns() - begun) // 1_000_000,
        dropped={reason: number for reason, number in sorted(checker.dropped.items()) if number},
    )


def needed(window: Sequence[Turn], context: Sequence[Turn]) -> int:
    """The tokens that extracting this window may cost: what is asked, and the longest answer."""
    asked = prompt.extraction(window, context)
    return count(asked.system) + count(asked.user) + MAX_ANSWER_TOKENS
