"""Words a later step is likely to quote, and how much showing one is worth.

A later call quotes names: paths, dotted and qualified identifiers, versions, codes, URLs. So a word is a whole
chain (`src/a/B.java`, `com.x.Y`, `v1.2.3`) and each of its parts, and the worth of a line is the worth of the words
it is first to show. Worths are relative, the same for every kind of content; what a kind knows are factors on lines.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CHAIN = re.compile(r"[\w$@]+(?:(?:://|[./\\:#-])[\w$@]+)*")
_PART = re.compile(r"[^./\\:#-]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_NAME = re.compile(r"[a-z0-9][A-Z]|_|[A-Za-z]\d|[A-Z]{3}")

WHOLE_CHAIN = 0.9
NAME = 1.2  # written as only names are: camelCase, snake_case, CAPITALS, with digits
PLAIN = 2.0  # common words of code and text: short, and quoted most often per character
SHORT = 0.05  # under five characters
NUMBER = 0.15


class Word(NamedTuple):
    """One word of a line: its text, worth, where it stands (`start` to `end`), and whether it is no name."""

    text: str
    worth: float
    start: int
    end: int
    plain: bool


def words_in(text: str) -> list[Word]:
    """The distinct words of a line in order, chains before their parts."""
    found: dict[str, Word] = {}
    for match in CHAIN.finditer(text):
        chain, start = match.group(), match.start()
        if chain in found:
            continue
        if not chain.isascii() and _CJK.search(chain):
            _add_pairs(found, chain, start)
            continue
        parts = _PART.findall(chain)
        if len(parts) == 1:
            found[chain] = _word(chain, start)
            continue
        found[chain] = Word(chain, WHOLE_CHAIN, start, match.end(), False)
        at = 0
        for part in parts:
            at = chain.index(part, at)
            if part not in found:
                found[part] = _word(part, start + at)
            at += len(part)
    return list(found.values())


def _add_pairs(found: dict[str, Word], chain: str, start: int) -> None:
    """Scripts without spaces are worth their distinct pairs of characters."""
    for i in range(0, max(1, len(chain) - 1), 2):
        pair = chain[i : i + 2]
        if pair not in found:
            found[pair] = Word(pair, PLAIN / 3, start + i, start + i + len(pair), True)


def _word(part: str, start: int) -> Word:
    size = len(part)
    end = start + size
    if part.isdigit():
        return Word(part, NUMBER if size > 1 else 0.0, start, end, False)
    name = bool(_NAME.search(part))
    if size < 5:
        return Word(part, NAME / 3 if name and size > 1 else SHORT, start, end, not name)
    return Word(part, NAME if name else PLAIN, start, end, not name)
