"""Finding words in a large text: linear scans, rare words first, passages around them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

HITS = 400  # places looked at for one word; a word that common tells passages apart no better with more
AROUND = 2  # lines shown before and after a line that matches
LONG = 400  # characters; a longer line is shown as windows around what matches
PASSAGES = 60
_WORD = re.compile(r"[^\s,;()\[\]{}<>\"'`|]+")
_PART = re.compile(r"\w+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]{2,}")


class Hit(NamedTuple):
    """A word of the query at `start`..`end` of the text on line `number`, and what finding it is worth."""

    start: int
    end: int
    number: int
    line_start: int
    word: str
    worth: float


class Excerpt(NamedTuple):
    """Lines `first`..`last`, or a window of one long line; `start`..`end` in the text."""

    first: int
    last: int
    start: int
    end: int
    rendered: str
    exact: str


def folded(text: str) -> str:
    """Lower case of the same length, so that offsets hold in both."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.replace("\u0130", "I").lower()


def terms(query: str) -> list[str]:
    """What to look for: the query as it stands, its words, and the parts of words; no word is dropped."""
    whole = query.strip()
    found = [whole, *_WORD.findall(whole)]
    for word in list(found[1:]):
        found.append(word.strip(".:!?。、，"))
        found.extend(_PART.findall(word))
    for run in _CJK.findall(whole):
        found.extend(run[i : i + 2] for i in range(len(run) - 1))
    return [term for term in dict.fromkeys(found) if term][:64]


def hits(text: str, query: str) -> list[Hit]:
    """Places of the query's words in the order of the text; whole words and exact case are worth more."""
    lower: str | None = None
    places: list[tuple[int, int, str, float]] = []
    wanted = terms(query)
    for rank, term in enumerate(wanted):
        offsets = _offsets(text, term)
        if not offsets:
            lower = folded(text) if lower is None else lower
            offsets = _offsets(lower, folded(term))
        rare = math.log(1 + len(text) / (1 + 40 * len(offsets)))
        worth = rare * (3.0 if rank == 0 else 1.0) * math.log(1 + len(term))
        places.extend((at, at + len(term), term, worth) for at in offsets)
    places.sort()
    return _numbered(text, places)


def _offsets(text: str, term: str) -> list[int]:
    """Where `term` stands: the first places, then the last one."""
    found: list[int] = []
    at = text.find(term)
    while at >= 0 and len(found) < HITS:
        found.append(at)
        at = text.find(term, at + len(term))
    if at >= 0:
        found.append(text.rfind(term))
    return found


def _numbered(text: str, places: Sequence[tuple[int, int, str, float]]) -> list[Hit]:
    found: list[Hit] = []
    number, line_start, before = 1, 0, 0
    for start, end, word, worth in places:
        number += text.count("\n", before, start)
        newline = text.rfind("\n", before, start)
        line_start = newline + 1 if newline >= 0 else line_start
        before = max(before, start)
        found.append(Hit(start, end, number, line_start, word, worth))
    return found


def lines_with(text: str, word: str) -> list[int]:
    """Numbers of the lines that hold `word`, each once."""
    places: list[tuple[int, int, str, float]] = []
    at = text.find(word)
    while at >= 0 and len(places) < 20_000:
        places.append((at, at + len(word), word, 0.0))
        newline = text.find("\n", at)
        at = text.find(word, newline) if newline >= 0 else -1
    return [hit.number for hit in _numbered(text, places)]


def line_start(text: str, number: int) -> int:
    """Where line `number` (from 1) begins."""
    at = 0
    for _ in range(number - 1):
        at = text.find("\n", at) + 1
    return at


def excerpts(text: str, found: Sequence[Hit], most: int) -> Iterator[Excerpt]:
    """Passages, best first: a passage is worth the words it holds that no earlier one has shown."""
    groups: dict[tuple[int, int], list[Hit]] = {}
    for hit in found:
        offset = hit.start - hit.line_start
        groups.setdefault((hit.number, offset // LONG if offset >= LONG else 0), []).append(hit)
    shown: set[str] = set()
    for _ in range(PASSAGES):
        if not groups:
            return
        key = max(groups, key=lambda k: (_worth(groups[k], shown), -k[0], -k[1]))
        group = groups.pop(key)
        shown.update(hit.word for hit in group)
        yield _excerpt(text, group, most)


def _worth(group: Sequence[Hit], shown: set[str]) -> float:
    best = {hit.word: hit.worth * (0.2 if hit.word in shown else 1.0) for hit in group}
    return sum(best.values())


def _excerpt(text: str, group: Sequence[Hit], most: int) -> Excerpt:
    first = group[0]
    end = text.find("\n", first.start)
    end = len(text) if end < 0 else end
    if end - first.line_start > LONG:
        best = max(group, key=lambda hit: hit.worth)
        half = max(LONG // 2, (best.end - best.start) // 8)
        start = max(first.line_start, best.start - half)
        stop = min(end, max(best.end, start + most) if best.end - start > most else best.end + half)
        return _render(text, best.number, best.number, start, stop, first.line_start, end)
    start, top = first.line_start, first.number
    stop, bottom = end, first.number
    for _ in range(AROUND):
        above = text.rfind("\n", max(0, start - 1 - LONG), max(0, start - 1)) + 1 if start else 0
        if start and (above or start - 1 <= LONG) and stop - above <= most:
            start, top = above, top - 1
        below = text.find("\n", stop + 1, stop + 1 + LONG)
        below = len(text) if below < 0 and stop < len(text) <= stop + 1 + LONG else below
        if below >= 0 and below - start <= most and stop < len(text):
            stop, bottom = below, bottom + 1
    return _render(text, top, bottom, start, stop, start, stop)


def _render(text: str, first: int, last: int, start: int, stop: int, line: int, end: int) -> Excerpt:
    exact = text[start:stop]
    rows = [f"{number}|{row}" for number, row in enumerate(exact.split("\n"), first)]
    if start > line:
        rows[0] = f"{first}|…{exact}"
    if stop < end:
        rows[-1] += f"… (characters {start - line + 1}-{stop - line} of {end - line})"
    return Excerpt(first, last, start, stop, "\n".join(rows), exact)


def merged(text: str, chosen: Sequence[Excerpt]) -> list[Excerpt]:
    """The excerpts in the order of the text, those that touch joined."""
    result: list[Excerpt] = []
    for excerpt in sorted(chosen, key=lambda item: item.start):
        if result and excerpt.start <= result[-1].end + 1:
            last = result[-1]
            if excerpt.end > last.end:
                whole = last.first != last.last or excerpt.first != excerpt.last
                result[-1] = (
                    _render(text, last.first, excerpt.last, last.start, excerpt.end, last.start, excerpt.end)
                    if whole
                    else Excerpt(
                        last.first,
                        excerpt.last,
                        last.start,
                        excerpt.end,
                        f"{last.rendered}\n{excerpt.rendered}",
                        text[last.start : excerpt.end],
                    )
                )
            continue
        result.append(excerpt)
    return result
