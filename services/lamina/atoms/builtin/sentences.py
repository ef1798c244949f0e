"""Sentences of a text with their exact places; code, quotes, logs and recalled memory are set aside.

Every function here is linear in the length of the text and defined for any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from lamina.text.injected import TAG

MAX_SENTENCE_CHARS = 600
"""A longer run without an end is no sentence of a conversation: it is skipped."""
_MAX_QUOTE_CHARS = 400
_LONG_QUOTE_CHARS = 24  # a shorter one is a title or a name: it belongs to the sentence around it

_RECALLED = re.compile(rf"<{TAG}(?=[\s>])[^<>]*>")
_FENCE = re.compile(r"^[ \t]{0,8}(```|~~~)", re.MULTILINE)
_LINE = re.compile(r"[^\n\r\u2028\u2029]+")
_BULLET = re.compile(r"\s{0,40}(?:(?:[-*•·▪◦–—]|\d{1,3}[.)]|[（(]\d{1,3}[)）])\s{1,8}(?:\[[ xX]?\]\s{1,4})?)?")
_SET_ASIDE_LINE = re.compile(
    r"\s{0,40}(?:[>|#]|\$ |>>> |at [\w.$<>]{3,200}\(|Traceback |File \"|"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)\b[ :\]]|[-=_*+]{3}|diff --git |@@ )"
)
_END = re.compile(
    r"[.!?…]{1,16}[\"'”’)\]]{0,2}(?=\s|$)|[。！？!?…]{1,16}[」』”’）)\"']{0,2}|；|[~～ㅎㅋㅠㅜ]{2,40}(?=\s|$)"
)
_NO_END = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|fig|approx|inc|ltd|jr|sr|a\.m|p\.m|cf|al|est|u\.s|u\.k)|"
    r"(?:^|[\s(])[A-Za-z]|^\d{1,3})\.$",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"“[^“”\n]*”|「[^「」\n]*」|『[^『』\n]*』|«[^«»\n]*»|(?<![\w\"])\"[^\"\n]*\"")


class Sentence(Struct, frozen=True):
    """Characters `start` up to `end` of a text. `quoted`: words of somebody else; `bullet`: an item of a list."""

    text: str
    start: int
    end: int
    quoted: bool = False
    bullet: bool = False


def set_aside(text: str) -> list[tuple[int, int, str]]:
    """The regions of `text` that nobody here says: ("recalled" | "code"), in order, without overlap."""
    regions: list[tuple[int, int, str]] = []
    at = 0
    while (opening := _RECALLED.search(text, at)) is not None:
        close = text.find(f"</{TAG}>", opening.end())
        if close < 0:
            break
        at = close + len(TAG) + 3
        regions.append((opening.start(), at, "recalled"))
    fences = [found for found in _FENCE.finditer(text) if not _inside(found.start(), regions)]
    for opening, closing in zip(fences[::2], [*fences[1::2], None], strict=False):
        regions.append((opening.start(), closing.end() if closing else len(text), "code"))
    return sorted(regions)


def sentences(text: str) -> list[Sentence]:
    """The sentences that are said in `text`, in order."""
    regions = set_aside(text)
    out: list[Sentence] = []
    for start, end in _gaps(len(text), regions):
        for line in _LINE.finditer(text, start, end):
            out += _of_line(text, line.start(), line.end())
    return out


def quotations(text: str) -> list[tuple[int, int]]:
    """Where something longer than a title stands in quotation marks."""
    found = (quote.span() for quote in _QUOTE.finditer(text))
    return [(start, end) for start, end in found if _LONG_QUOTE_CHARS <= end - start <= _MAX_QUOTE_CHARS]


def _inside(at: int, regions: list[tuple[int, int, str]]) -> bool:
    # Few regions stand in one text, and they are in order: a hostile text of many is cut by the bisection.
    low, high = 0, len(regions)
    while low < high:
        middle = (low + high) // 2
        if regions[middle][1] <= at:
            low = middle + 1
        else:
            high = middle
    return low < len(regions) and regions[low][0] <= at


def _gaps(length: int, regions: list[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    at = 0
    for start, end, _ in regions:
        if start > at:
            yield at, start
        at = max(at, end)
    if at < length:
        yield at, length


def _of_line(text: str, start: int, end: int) -> Iterator[Sentence]:
    if _SET_ASIDE_LINE.match(text, start, end):
        return
    marker = _BULLET.match(text, start, end)
    first = marker.end() if marker else start
    bullet = bool(marker and marker.group().strip())
    line = text[first:end]
    quotes = quotations(line) if len(line) > _LONG_QUOTE_CHARS else []
    at = 0
    for stop in _stops(line):
        piece = line[at:stop]
        left = at + len(piece) - len(piece.lstrip())
        said = piece.strip()
        at = stop
        if said and len(said) <= MAX_SENTENCE_CHARS:
            quoted = any(begin <= left + 1 and left + len(said) <= close + 2 for begin, close in quotes[:8])
            yield Sentence(said, first + left, first + left + len(said), quoted, bullet)


def _stops(line: str) -> Iterator[int]:
    last = 0
    for found in _END.finditer(line):
        if line[found.start()] == "." and _NO_END.search(line, max(last, found.start() - 12), found.start() + 1):
            continue
        last = found.end()
        yield last
    if last < len(line):
        yield len(line)
