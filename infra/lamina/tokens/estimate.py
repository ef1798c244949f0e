"""A count of o200k tokens from two small measured tables, for machines without an exact tokenizer.

The text is cut into the pieces o200k cuts it into; no token crosses a piece. Inside a piece of Latin letters
or punctuation the tokens follow from how likely o200k splits between each two neighbouring characters
(`tables.txt`, lines 1-98: one row per left character, one column per right, `0` never to `n` always). A Han or
Hangul character costs by how many o200k tokens hold it (lines 99-104), any other by its script. Both tables and the
factors below were measured with bpe-openai 0.1.4 on program sources, Markdown, manuals, message catalogues in
forty languages and random characters; tests/unit/test_tokens.py holds the true counts of texts they never saw.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import ceil

_LATIN = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_SIGNS = r"!-/:-@\[-`{-~"
_PIECES = re.compile(
    rf"[ \t{_SIGNS}]?(?:[A-Z]*[a-z{_LATIN}]+|[A-Z]+)(?:'(?:s|t|re|ve|m|ll|d))?"
    rf"|[0-9]{{1,3}}| ?[{_SIGNS}]+[\r\n/]*| ?[^\x00-\x7f{_LATIN}]+"
    r"|[ \t\r\n]*[\r\n]+|[ \t]+(?!\S)|[ \t]+|[\x00-\x1f\x7f]"
)
_LETTERS = frozenset(filter(re.compile(rf"[A-Za-z{_LATIN}]").match, map(chr, range(0x2000))))
_ROWS = 98
_KNOTS = ((0.0, 0.0), (0.2, 0.03), (0.36, 0.14), (0.61, 0.4), (0.86, 0.75), (1.1, 1.12), (1.38, 1.52), (1.7, 1.98),
          (2.2, 2.6), (2.7, 3.2), (3.4, 4.0), (4.4, 5.0), (5.4, 5.8))  # fmt: skip
_NOT_A_WORD = 16  # letters: longer runs are no words, and split more often than the pairs of words do
_LONG_RUN = 6
_SPACE = " \t\r\n"
_MARKS = frozenset(filter(re.compile(rf"[{_SIGNS}]").match, map(chr, range(128))))
_PLAIN = ((0.34, 0.95), (0.5, 1.17))  # mean split of a text's words, factor: measured on 25 languages
_SCRIPTS = (  # first code point, tokens per character
    (0x0000, 1.0), (0x0080, 1.2), (0x0250, 2.0), (0x0300, 1.1), (0x0370, 0.55), (0x0400, 0.45), (0x0530, 0.5),
    (0x0590, 0.6), (0x0700, 2.0), (0x0900, 0.6), (0x0B00, 1.3), (0x0B80, 0.6), (0x0E80, 1.3), (0x0F00, 1.8),
    (0x1000, 0.7), (0x10A0, 0.5), (0x1100, 3.0), (0x1780, 0.7), (0x1800, 3.0), (0x2000, 1.2), (0x2070, 2.2),
    (0x2500, 1.2), (0x2600, 2.2), (0x2E80, 3.0), (0x3000, 1.0), (0x3041, 0.62), (0x30A0, 0.78), (0x3100, 3.0),
    (0xFF00, 1.05), (0xFFF0, 3.0), (0x10000, 4.0), (0x1F000, 2.6), (0x20000, 4.0),
)  # fmt: skip
_STARTS = [start for start, _ in _SCRIPTS]
_TIERS = ((0.64, 1.1, 1.4), (0.65, 1.1, 1.75))  # Han, Hangul: in >= 10, 3-9, 1-2 tokens of the vocabulary
_RARE = ((0x3400, 0xA000, 2.2), (0xAC00, 0xD7A4, 2.4))


@cache
def _tables() -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    lines = files(__package__).joinpath("tables.txt").read_text("utf-8").split("\n")
    alphabet = [*map(chr, range(32, 127)), "\n", "\t", "\u00e9"]
    splits = {
        (left, right): (ord(lines[i][j]) - 48) / 62
        for i, left in enumerate(alphabet)
        for j, right in enumerate(alphabet)
    }
    weights = {
        character: weight
        for script, tiers in enumerate(_TIERS)
        for tier, weight in enumerate(tiers)
        for character in lines[_ROWS + 3 * script + tier]
    }
    return splits, weights


@cache
def _character(character: str) -> float:
    known = _tables()[1].get(character)
    if known is not None:
        return known
    code = ord(character)
    for first, end, weight in _RARE:
        if first <= code < end:
            return weight
    return _SCRIPTS[bisect_right(_STARTS, code) - 1][1]


_FOLD = str.maketrans({"\r": "\n"})
_ACCENTED = re.compile(r"[^\x00-\x7f]")


def _splits(piece: str) -> float:
    if not piece.isascii():
        piece = _ACCENTED.sub("\u00e9", piece)
    return sum(map(_tables()[0].__getitem__, pairwise(piece)))


def _word(raw: float, letters: int) -> float:
    if letters > _NOT_A_WORD:
        return 1 + 1.42 * raw
    at = min(bisect_right(_KNOTS, (raw, 99.0)), len(_KNOTS) - 1)
    (x0, y0), (x1, y1) = _KNOTS[at - 1], _KNOTS[at]
    return 1 + y0 + (raw - x0) * (y1 - y0) / (x1 - x0)


def _space(piece: str) -> float:
    if piece.strip(piece[0]):
        return 1 + len(piece) / 6
    return 1 + len(piece) // (80 if piece[0] == " " else 12)


def _signs(piece: str) -> float:
    return max(1 + 1.05 * _splits(piece.translate(_FOLD)), 2 if len(piece) > _LONG_RUN else 1)


def _strangeness(mean_split: float) -> float:
    """English names most words' pairs; in other Latin-script languages the same pairs split more often."""
    low, high = _PLAIN
    at = min(1.0, max(0.0, (mean_split - low[0]) / (high[0] - low[0])))
    return low[1] + at * (high[1] - low[1])


def estimate(text: str) -> int:
    """About the o200k tokens of `text`: more rather than fewer. Linear in the length; any text is counted."""
    words = others = splits = count = 0.0
    for piece, times in Counter(_PIECES.findall(text)).items():
        last = piece[-1]
        if last in _LETTERS:
            raw = _splits(piece)
            words += _word(raw, len(piece)) * times
            if piece[0] not in _MARKS:
                splits += raw * times
                count += times
        elif not piece.isascii():
            others += sum(map(_character, piece.lstrip(" "))) * times
        elif last.isdigit():
            others += times
        elif last in _SPACE and piece.isspace():
            others += _space(piece) * times
        else:
            others += _signs(piece) * times
    return ceil(others + words * _strangeness(splits / count if count else 0.0))
