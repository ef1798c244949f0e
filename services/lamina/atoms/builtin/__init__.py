"""The built-in extractor: what is worth keeping of a window of turns, by rules alone."""

from __future__ import annotations

from lamina.atoms.builtin.extracting import extract

VERSION = "7"
__all__ = ["VERSION", "extract"]
