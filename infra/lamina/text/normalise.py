"""One spelling for what people write in many: widths, case, accents, control characters."""

from __future__ import annotations

import re
import unicodedata

# Latin letters with marks only. Marks of other scripts carry the word (kana が, Hangul, Cyrillic й).
_MARKED = re.compile("[\u00c0-\u024f\u1e00-\u1eff\u0300-\u036f]")
# Separators keep words apart; unpaired surrogates cannot be stored as UTF-8.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# Zero-width characters and soft hyphens stand inside words and mean nothing for search.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")


def _unmark(found: re.Match[str]) -> str:
    base = unicodedata.normalize("NFD", found.group())[0]
    return "" if unicodedata.combining(base) else base


def compose(text: str) -> str:
    """Return `text` in NFKC (half and full width alike), without control and invisible characters.

    Case is kept, as `tokens` reads it to cut `getUserName`. Never raises; lone surrogates become spaces.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    return _CONTROL.sub(" ", text)


def fold(text: str) -> str:
    """Return composed `text` without case and without the marks of Latin letters (`É` is `e`)."""
    if text.isascii():
        return text.lower()
    return _MARKED.sub(_unmark, text.casefold())


def normalise(text: str) -> str:
    """Return the spelling under which texts are compared: NFKC, casefolded, unmarked, no control characters.

    Never raises: NUL, other controls and lone surrogates become spaces, invisible characters vanish.
    """
    return fold(compose(text))
