"""Text of anyone's as part of a Markdown file: it can neither end its line nor be taken for markup."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"([\\`*\[\]<>|~])|(?<![^\W_])(_)|(_)(?![^\W_])|^(#|[-+](?=\s)|\d+(?=[.)]\s))")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+")
_SPACES = re.compile(r"\s+")
CUT = "…"


def line(text: str, most: int | None = None) -> str:
    """`text` as one line of plain text in Markdown: markup escaped, control and direction characters out, at most
    `most` characters of the text (cut at a word where there is one)."""
    return _MARKUP.sub(lambda found: _escaped(found[0]), one_line(text, most))


def one_line(text: str, most: int | None = None) -> str:
    """As `line`, with markup as it is: for titles in front matter and tables."""
    plain = _SPACES.sub(" ", _UNSEEN.sub(" ", text)).strip()
    if most is None or len(plain) <= most:
        return plain
    cut = plain[: most - len(CUT)]
    at_word = cut.rsplit(" ", 1)[0]
    return (at_word if len(at_word) > most // 2 else cut).rstrip() + CUT


def _escaped(found: str) -> str:
    return f"{found}\\" if found.isdecimal() else f"\\{found}"
