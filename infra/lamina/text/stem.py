"""English words to their stems: Porter's rules (M. F. Porter, 1980, as in SQLite's FTS5) and irregular forms."""

from __future__ import annotations

import re
from functools import lru_cache

_LONGEST = 64
_CACHED_WORDS = 1 << 15

# The first word of a line stands for the rest, which no rule of endings can reach.
_IRREGULAR_TABLE = """
go goes went gone|buy bought|see saw seen|eat ate eaten|take took taken|give gave given|get got gotten|make made
come came|know knew known|think thought|feel felt|find found|tell told|leave left|meet met|run ran|write wrote written
speak spoke spoken|begin began begun|break broke broken|bring brought|build built|catch caught|choose chose chosen
draw drew drawn|drink drank drunk|drive drove driven|fall fell fallen|feed fed|fight fought|fly flew flown
forget forgot forgotten|grow grew grown|hear heard|hide hid hidden|hold held|keep kept|lead led|learn learnt|lend lent
lose lost|mean meant|pay paid|ride rode ridden|ring rang rung|rise rose risen|say said|sell sold|send sent
shake shook shaken|shoot shot|show shown|sing sang sung|sit sat|sleep slept|spend spent|stand stood|steal stole stolen
swim swam swum|teach taught|throw threw thrown|understand understood|wake woke woken|wear wore worn|win won
become became|child children|person people|man men|woman women|foot feet|tooth teeth|mouse mice|wife wives|life lives
good better best|bad worse worst|2 two|3 three|4 four|5 five|6 six|7 seven|8 eight|9 nine|10 ten
"""
# A vowel is a, e, i, o, u, or y after a consonant; the measure counts vowel-consonant sequences.
_C = "(?:[^aeiouy]|(?<=[aeiou])y|(?<![a-z])y)"
_V = "(?:[aeiou]|(?<=[^aeiou])y)"
_HAS_VOWEL = re.compile(rf"^(?:{_C})*{_V}")
_M0 = re.compile(rf"^(?:{_C})*(?:{_V})+{_C}")
_M1 = re.compile(rf"^(?:{_C})*(?:{_V})+(?:{_C})+(?:{_V})+{_C}")
_M_IS_1 = re.compile(rf"^(?:{_C})*(?:{_V})+(?:{_C})+(?:{_V})*$")
_CVC = re.compile(rf"{_C}{_V}[^aeiouwxy]$")

_STEP2_TABLE = """
ational:ate tional:tion enci:ence anci:ance izer:ize logi:log bli:ble alli:al entli:ent eli:e ousli:ous
ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble
"""
_STEP3_TABLE = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"
_STEP4_TABLE = "ement ance ence able ible ment sion tion ant ent ism ate iti ous ive ize al er ic ou"


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    return tuple((ending, better) for ending, _, better in (pair.partition(":") for pair in table.split()))


_STEP2 = _pairs(_STEP2_TABLE)
_STEP3 = _pairs(_STEP3_TABLE)
_STEP4 = tuple(_STEP4_TABLE.split())
_ENDINGS2, _ENDINGS3 = (tuple(ending for ending, _ in step) for step in (_STEP2, _STEP3))


def _irregular() -> dict[str, str]:
    lines = _IRREGULAR_TABLE.replace("|", "\n").split("\n")
    return {form: first for first, *forms in (line.split() for line in lines if line) for form in forms}


_IRREGULAR = _irregular()


def stem(word: str) -> str:
    """Return the stem of a folded English word of 3 to 63 letters, anything else as it is."""
    if not 2 < len(word) < _LONGEST or not (word.isascii() and word.isalpha()):
        return word
    return _stem(word)


@lru_cache(_CACHED_WORDS)
def _stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    for step in (_plurals, _past, _y, _step2, _step3, _step4, _final):
        word = step(word)
    return word


def _plurals(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _M0.match(word[:-3]) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            base = word[: -len(ending)]
            return _mended(base) if _HAS_VOWEL.match(base) else word
    return word


def _mended(base: str) -> str:
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if len(base) > 1 and base[-1] == base[-2] and base[-1] not in "aeiouylsz":
        return base[:-1]
    return base + "e" if _M_IS_1.match(base) and _CVC.search(base) else base


def _y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _HAS_VOWEL.match(word[:-1]) else word


def _step2(word: str) -> str:
    return _bettered(word, _STEP2) if word.endswith(_ENDINGS2) else word


def _step3(word: str) -> str:
    return _bettered(word, _STEP3) if word.endswith(_ENDINGS3) else word


def _bettered(word: str, pairs: tuple[tuple[str, str], ...]) -> str:
    """Return `word` with its first ending of `pairs` replaced, if what stays before it is long enough."""
    ending, better = next(pair for pair in pairs if word.endswith(pair[0]))
    base = word[: -len(ending)]
    return base + better if _M0.match(base) else word


def _step4(word: str) -> str:
    if not word.endswith(_STEP4):
        return word
    ending = next(ending for ending in _STEP4 if word.endswith(ending))
    base = word[:-3] if ending in ("sion", "tion") else word[: -len(ending)]
    return base if _M1.match(base) else word


def _final(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        if _M1.match(base) or (_M0.match(base) and not _CVC.search(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _M1.match(word[:-1]) else word
