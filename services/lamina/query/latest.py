"""Of two turns that tell the same of what is asked, the newer first: what is asked for is how things are. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from lamina import text
from lamina.query.moments import sentences

FIRST = 10
"""So many of the best, or as many as are asked for, change places among themselves: the answer holds the same."""
SCORE = 0.7
"""Of the older one's score, what the newer one has at least."""
ALIKE = 0.9
"""The cosine of the two, at least."""
WORDS_LONG = 0.6
"""Of the words of the question in the older one, how many the newer one has, where both are long; all where short."""
SHORT_CHARS, LONG_CHARS = 50.0, 300.0

# "What is", "how many", "when does": how things are now.
_PRESENT = re.compile(
    r"^\W*(?:(?:what|which|who|whose|where|when)(?:'s| is| are| do| does| am| should| can)\b"
    r"|(?:what|which) (?:[\w'-]+ ){1,4}(?:is|are|do|does|should|can|am)\b"
    r"|how (?:many|much|long|often|old|far|big|large)\b)"
    r"|\b(?:now|currently|current|latest|these days|at the moment|still)\b"
    r"|现在|現在|目前|最新|多少|几[个个次点时天岁位]|什么时候|什麼時候|是什么|是什麼|是谁|在哪"
    r"|지금|현재|요즘|최신|몇|얼마|언제|뭐야|무엇|어디"
    r"|今は|今の|最近|いくつ|いくら|いつ|何時|何です|何か|どこ",
    re.IGNORECASE,
)
# "What did", "at first", "how has it changed": how they were, or all of it.
_PAST = re.compile(
    r"\b(?:did|was|were|had|first|original(?:ly)?|initial(?:ly)?|before|previous(?:ly)?|used to|history|earlier|ago|"
    r"in order|summari[sz]e|list|chang(?:e|ed|es)|since)\b"
    r"|了[吗嗎?？]|以前|之前|最初|原来|原來|本来|변했|바뀌|예전|처음|원래|이전|[했았었였][어니나던]"
    r"|前は|最初|もともと|以前|でした|ました|変わ",
    re.IGNORECASE,
)


class Told(Struct, frozen=True):
    """A turn among the best: when and by whom it was said, how long it is, and which words of the question it has."""

    time_us: int
    role: str
    chars: int
    words: frozenset[str]


def asks_present(query: str) -> bool:
    """Does a question of one sentence ask how things are now?"""
    return len(sentences(query)) == 1 and not _PAST.search(query) and _PRESENT.search(query) is not None


def latest(
    ranked: Sequence[text.Ranked], told: Mapping[int, Told], alike: Callable[[int, int], float], most: int = FIRST
) -> list[text.Ranked]:
    """The ranking where among the first `most` (ten at most) a newer turn stands right above the best older one that
    tells the same.

    It does so if the same role says it, alike (`alike`: the cosine of two turns), with about the words of the
    question that the older one has, and not much less of a score. What it gains is the part `recency`.
    """
    first = ranked[: min(most, FIRST)]
    above: dict[int, int] = {}
    for place, newer in enumerate(first):
        for older in first[:place]:
            if _replaces(newer, older, told) and alike(newer.turn, older.turn) >= ALIKE:
                above[newer.turn] = older.turn
                break
    if not above:
        return list(ranked)
    moved: list[text.Ranked] = []

    def put(one: text.Ranked, score: float) -> None:
        newer = [other for other in first if above.get(other.turn) == one.turn]
        for other in sorted(newer, key=lambda other: (-told[other.turn].time_us, -other.turn)):
            put(other, score)
        moved.append(_raised(one, score))

    for one in first:
        if one.turn not in above:
            put(one, one.score)
    return [*moved, *ranked[len(first) :]]


def _replaces(newer: text.Ranked, older: text.Ranked, told: Mapping[int, Told]) -> bool:
    a, b = told.get(older.turn), told.get(newer.turn)
    if a is None or b is None or a.role != b.role or b.role not in ("user", ""):
        return False
    if (b.time_us, newer.turn) <= (a.time_us, older.turn) or newer.score < SCORE * older.score or not a.words:
        return False
    long = min(1.0, max(0.0, (min(a.chars, b.chars) - SHORT_CHARS) / (LONG_CHARS - SHORT_CHARS)))
    return len(a.words & b.words) >= (1.0 - (1.0 - WORDS_LONG) * long) * len(a.words)


def _raised(one: text.Ranked, to: float) -> text.Ranked:
    gain = to - one.score
    return text.Ranked(one.turn, to, {**one.parts, "recency": gain}) if gain > 0 else one
