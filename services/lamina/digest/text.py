"""A result as numbered lines: cleaned for showing, cut into pieces, sampled where it is huge."""

from __future__ import annotations

import re
from typing import NamedTuple

# Kept lines of a huge text: its beginning, its end, even samples between, and around signs of trouble.
SAMPLED_ABOVE = 64 * 1024  # characters
HEAD = TAIL = 16 * 1024
SAMPLES = 8
SAMPLE = 4 * 1024
SIGNALS = ("error", "Error", "ERROR", "FAIL", "Exception", "Traceback", "fatal", "panic", "warning")
SIGNAL_HITS = 3
REACH = 2000  # how far a sample is widened to whole lines
LINES = 3000  # lines and pieces looked at closely; of more, the beginning, the end and every n-th between
PIECE = 160  # characters of one line taken together

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_OWN = re.compile(r"\s*(\d{1,7})(?:[:|│→\t]|\s\|\s)")


class Line(NamedTuple):
    """A line, or a piece of a very long one: `number` from 1 in the result, `label` what to print before `body`."""

    number: int
    label: str
    body: str
    cut: bool
    framing: bool
    indent: int


class Lines(NamedTuple):
    """What the digest looks at. `own` = the text numbers its lines itself, from `own[0]` to `own[1]`."""

    lines: list[Line]
    total: int
    own: tuple[int, int] | None
    sampled: bool


def clean(line: str) -> str:
    """The line as it may be shown: without colour codes, control and direction characters; tabs are blanks."""
    if line.isascii() and line.isprintable():
        return line
    return _CONTROL.sub("", _ANSI.sub("", line).replace("\t", " "))


def lines_of(text: str) -> Lines:
    """Read `text` once, in time linear in its size; above `SAMPLED_ABOVE` only samples are looked at closely."""
    if len(text) <= SAMPLED_ABOVE:
        raw = list(enumerate(text.split("\n"), 1))
        total, sampled = len(raw), False
    else:
        raw, total = _sample(text)
        sampled = True
    own = own_numbers([line for _, line in raw])
    kept: list[Line] = []
    for number, line in raw:
        shown = clean(line)
        label = f"{number}|"
        match = _OWN.match(shown) if own else None
        if match:
            label, shown = f"{number}|{match.group(1)}:", shown[match.end() :]
        body = shown.lstrip()
        indent, shown = len(shown) - len(body), body.rstrip()
        framing = own is not None and match is None
        if len(shown) > PIECE * 2:
            kept.extend(Line(number, label, piece, True, framing, indent) for piece in pieces(shown))
        elif shown:
            kept.append(Line(number, label, shown, False, framing, indent))
    return Lines(thinned(kept), total, own, sampled)


def thinned(lines: list[Line]) -> list[Line]:
    """At most `LINES` of the lines."""
    if len(lines) <= LINES:
        return lines
    third = LINES // 3
    middle = lines[third:-third]
    return lines[:third] + middle[:: -(-len(middle) // third)] + lines[-third:]


def own_numbers(lines: list[str]) -> tuple[int, int] | None:
    """First and last number, where most lines carry their own rising number (`cat -n`, an editor's view)."""
    numbers: list[int] = []
    filled = 0
    for line in lines:
        if line and not line.isspace():
            filled += 1
            match = _OWN.match(line)
            if match and (not numbers or int(match.group(1)) > numbers[-1]):
                numbers.append(int(match.group(1)))
    if len(numbers) < 3 or len(numbers) < 0.6 * filled:
        return None
    return numbers[0], numbers[-1]


def pieces(line: str) -> list[str]:
    """A very long line in pieces that end where its structure does; of a huge one evenly spread samples."""
    if len(line) > SAMPLE * SAMPLES:
        step = len(line) // SAMPLES
        spans = [line[i : i + SAMPLE] for i in range(0, len(line) - SAMPLE, step)]
        spans.append(line[-SAMPLE:])
    else:
        spans = [line]
    found: list[str] = []
    for span in spans:
        at = 0
        while at < len(span):
            end = at + PIECE
            if end < len(span):
                end = break_before(span, at + PIECE // 3, end)
            found.append(span[at:end].strip())
            at = end
    return [piece for piece in found if piece]


def break_before(text: str, least: int, end: int) -> int:
    """Where to cut between `least` and `end`: after a record, else after a value, a sentence, a word."""
    for marks in (("},", "],", "/>", "\n"), (",", ";", ">", "。", ". "), (" ", "、", "&")):
        stop = max(text.rfind(mark, least, end) + len(mark) for mark in marks)
        if stop > least:
            return stop
    return end


def _sample(text: str) -> tuple[list[tuple[int, str]], int]:
    spans = [(0, HEAD), (len(text) - TAIL, len(text))]
    step = len(text) // (SAMPLES + 1)
    spans += [(i * step, i * step + SAMPLE) for i in range(1, SAMPLES + 1)]
    for signal in SIGNALS:
        at = text.find(signal)
        for _ in range(SIGNAL_HITS):
            if at < 0:
                break
            spans.append((max(0, at - 400), at + 800))
            at = text.find(signal, at + 4000)
    spans.sort()
    numbers, total = _line_numbers(text, [start for start, _ in spans])
    raw: dict[int, str] = {}
    for (start, end), first in zip(spans, numbers, strict=True):
        begin = 0 if start <= REACH else text.rfind("\n", start - REACH, start) + 1 or start
        stop = text.find("\n", end, end + REACH)
        for number, line in enumerate(text[begin : end if stop < 0 else stop].split("\n"), first):
            if len(line) > len(raw.get(number, "")):
                raw[number] = line
    return sorted(raw.items()), total


def _line_numbers(text: str, offsets: list[int]) -> tuple[list[int], int]:
    """The line number at each of the rising offsets, and the number of lines: newlines are counted once."""
    found: list[int] = []
    line, before = 1, 0
    for offset in offsets:
        line += text.count("\n", before, offset)
        before = offset
        found.append(line)
    return found, line + text.count("\n", before)
