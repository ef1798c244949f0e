"""The built-in extractor: what is worth keeping of a window of turns, by rules alone."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.atoms.turns import Turn
from lamina.knowledge import Atom

VERSION = "0"


def extract(window: Sequence[Turn], context: Sequence[Turn] = ()) -> tuple[Atom, ...]:
    """The atoms of `window`, oldest first. `context` are the turns before it: read for names, never a source."""
    del window, context
    return ()
