"""Choosing lines for a budget: the ones that show the most new words per character.

Greedy cover with lazy re-scoring: the worth of a line falls only as words are covered, so a stale score is an upper
bound and few lines are scored twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.digest.kinds.plan import Plan
from lamina.digest.text import Line
from lamina.digest.words import Word, words_in

SHOWN = 130  # characters of a line shown together, unless one word is longer
LEAD = 200  # characters of a line that comes first
WHOLE = 240  # characters of a line that is not cut where lines are shown whole
LEAST = 40  # characters shown of a line, or three fifths of a shorter one
NEARLY = 3  # characters not worth cutting off
FAINT = 0.1  # words worth less do not widen what is shown of a line
REPEATED = 0.4  # a word of n lines is worth n**REPEATED times as much: it is what the result is about
REPEATED_UP_TO = 8.0
KNOWN = 1e9


class Span(NamedTuple):
    """The part of a line to show, what it is newly worth, and its cost in characters."""

    start: int
    end: int
    gain: float
    cost: int


def choose(
    lines: Sequence[Line],
    plan: Plan,
    known: frozenset[str],
    budget: int,
) -> list[str]:
    """Digest lines in the order of the result, together at most `budget` characters with their newlines.

    `known` are words the call itself already shows; they are worth nothing.
    """
    covered: dict[str, float] = dict.fromkeys(known, KNOWN)
    picked: dict[int, str] = {}
    left = budget
    for index in plan.lead:
        line = lines[index]
        shown = render(line, 0, min(len(line.body), LEAD))
        if index not in picked and len(shown) < left:
            picked[index] = shown
            left -= len(shown) + 1
            cover(covered, [word for word in words_in(line.body) if word.end <= LEAD])
    words = rated(lines, plan)
    heap: list[tuple[float, int, int]] = []
    for index, own in words.items():
        span = best_span(lines[index], own, covered, plan.whole)
        if span.gain > 0 and index not in picked:
            heap.append((-span.gain / span.cost, index, len(picked)))
    heapq.heapify(heap)
    while heap and left > 0:
        _, index, seen = heapq.heappop(heap)
        span = best_span(lines[index], words[index], covered, plan.whole)
        if span.gain <= 0:
            continue
        score = -span.gain / span.cost
        if seen != len(picked) and heap and score > heap[0][0]:
            heapq.heappush(heap, (score, index, len(picked)))
            continue
        shown = render(lines[index], span.start, span.end)
        if len(shown) >= left:
            continue
        picked[index] = shown
        left -= len(shown) + 1
        cover(covered, [word for word in words[index] if word.start >= span.start and word.end <= span.end])
    return [picked[index] for index in sorted(picked)]


def rated(lines: Sequence[Line], plan: Plan) -> dict[int, list[Word]]:
    """The words of each line that counts, with what they are worth in this result."""
    factors = plan.factors
    words = {index: words_in(line.body) for index, line in enumerate(lines) if factors[index] > 0}
    counts: dict[str, float] = {}
    for index, own in words.items():
        for word in own:
            counts[word.text] = counts.get(word.text, 0.0) + factors[index]
    repeated = {text: max(1.0, min(count, REPEATED_UP_TO)) ** REPEATED for text, count in counts.items()}
    for index, own in words.items():
        factor, names = factors[index], factors[index] ** plan.names
        words[index] = [
            word._replace(worth=word.worth * repeated[word.text] * (factor if word.plain else names)) for word in own
        ]
    return words


def cover(covered: dict[str, float], words: Sequence[Word]) -> None:
    """Take the words as shown: a second showing is worth only what it is worth more."""
    for word in words:
        covered[word.text] = max(covered.get(word.text, 0.0), word.worth)


def best_span(line: Line, words: Sequence[Word], covered: Mapping[str, float], whole: bool) -> Span:
    """The stretch of the line with its new words: whole words, at least `LEAST` characters or most of the line."""
    body = line.body
    new = [(word.start, word.end, gain) for word in words if (gain := word.worth - covered.get(word.text, 0.0)) > 0]
    if not new:
        return Span(0, 0, 0.0, 1)
    if whole and len(body) <= WHOLE:
        return Span(0, len(body), sum(word[2] for word in new), len(line.label) + len(body) + 1)
    least = min(LEAST, -(-len(body) * 3 // 5))
    start, end = densest([word for word in new if word[2] >= FAINT] or new, len(line.label) + 2, least)
    if end - start < least:
        end = min(len(body), start + least)
        start = max(0, end - least)
        while start > 0 and in_word(body[start - 1]) and end - start < SHOWN:
            start -= 1
        while end < len(body) and in_word(body[end]) and end - start < SHOWN:
            end += 1
    start, end = 0 if start <= NEARLY else start, len(body) if len(body) - end <= NEARLY else end
    gain = sum(word[2] for word in new if word[0] >= start and word[1] <= end)
    return Span(start, end, gain, len(line.label) + end - start + 2)


def in_word(char: str) -> bool:
    """Whether a cut beside this character would cut a word."""
    return char.isalnum() or char == "_"


def densest(words: Sequence[tuple[int, int, float]], label: int, least: int) -> tuple[int, int]:
    """The stretch of at most `SHOWN` characters (or one word) with the greatest gain per character shown."""
    ordered = sorted(words)
    best, stretch = -1.0, (0, 0)
    for i, (start, end, _) in enumerate(ordered):
        gain, last = 0.0, end
        for _, other_end, worth in ordered[i:]:
            if other_end - start > SHOWN and gain:
                break
            gain += worth
            last = max(last, other_end)
            ratio = gain / (label + max(least, last - start))
            if ratio > best:
                best, stretch = ratio, (start, last)
    return stretch


def render(line: Line, start: int, end: int) -> str:
    """One digest line: the number `read` opens, then the text; `…` marks where it was cut."""
    tail = "…" if end < len(line.body) or line.cut else ""
    head = "…" if start > 0 else ""
    return f"{line.label}{head}{line.body[start:end]}{tail}"
