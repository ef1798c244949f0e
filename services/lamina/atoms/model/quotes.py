"""Where a quote stands in its source: exactly, or but for spaces, width and typographic marks."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right

from msgspec import Struct

from lamina.text.injected import TAG

SHORTEST = 2
"""Characters: one alone stands anywhere."""
LONGEST = 2_000
_OPEN, _CLOSE = re.compile(rf"<{TAG}(?=[\s>])[^<>]*>"), f"</{TAG}>"
# a letter with its marks, or the jamo of one syllable: what NFC may make one of
_CLUSTER = re.compile("[\u1100-\u115f][\u1160-\u11a7][\u11a8-\u11ff]?|.[\u0300-\u036f\u3099\u309a]*", re.DOTALL)
_SAME = str.maketrans(
    "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2010\u2011\u2012\u2013\u2014\u2212", '\'\'\'"""""------'
)
_EDGES = " \t\r\n\"'`\u201c\u201d\u2018\u2019\u300c\u300d\u2026."


class Place(Struct, frozen=True):
    """Characters `start` up to `end` of the source; `recalled`: they stand in what memory itself put there."""

    start: int
    end: int
    recalled: bool = False


class Source:
    """A text in which quotes are looked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._recalled = _recalled(text)
        self._loose: tuple[str, list[int], list[int]] | None = None

    def find(self, quote: str) -> Place | None:
        """The first place of `quote` outside of recalled blocks, else within one; None where it does not stand."""
        if not SHORTEST <= len(quote.strip()) <= LONGEST:
            return None
        bare = quote.strip(_EDGES)
        places = self._exact(quote) or self._loosely(quote) or self._exact(bare) or self._loosely(bare)
        return next((place for place in places if not place.recalled), places[0] if places else None)

    def _place(self, start: int, end: int) -> Place:
        inside = any(start < closes and end > opens for opens, closes in self._recalled)
        return Place(start, end, inside)

    def _exact(self, quote: str) -> list[Place]:
        """Every place outside of a recalled block is as good as the first; so no more than one of each is kept."""
        if len(quote) < SHORTEST:
            return []
        found: list[Place] = []
        at = self.text.find(quote)
        while at >= 0:
            place = self._place(at, at + len(quote))
            found.append(place)
            if not place.recalled:
                break
            after = max(closes for opens, closes in self._recalled if at < closes and at + len(quote) > opens)
            at = self.text.find(quote, max(after, at + 1))
        return found

    def _loosely(self, quote: str) -> list[Place]:
        wanted = _loose(quote)[0].strip()
        if len(wanted) < SHORTEST:
            return []
        if self._loose is None:
            self._loose = _loose(self.text)
        text, starts, ends = self._loose
        found: list[Place] = []
        at = text.find(wanted)
        while at >= 0 and len(found) < 100:
            place = self._place(starts[at], ends[at + len(wanted) - 1])
            found.append(place)
            if not place.recalled:
                break
            at = text.find(wanted, at + 1)
        return found


def _recalled(text: str) -> list[tuple[int, int]]:
    """Where memory's own blocks stand; one that is never closed is what somebody wrote."""
    blocks = []
    at = 0
    while (opening := _OPEN.search(text, at)) is not None:
        end = text.find(_CLOSE, opening.end())
        if end < 0:
            break
        at = end + len(_CLOSE)
        blocks.append((opening.start(), at))
    return blocks


def _loose(text: str) -> tuple[str, list[int], list[int]]:
    """`text` with one space for many, one form of each mark and letter; and where each character came from."""
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for found in _CLUSTER.finditer(text):
        form = unicodedata.normalize("NFKC", found.group()).translate(_SAME)
        for character in form:
            if character.isspace():
                if out and out[-1] == " ":
                    ends[-1] = found.end()
                    continue
                character = " "
            out.append(character)
            starts.append(found.start())
            ends.append(found.end())
    return "".join(out), starts, ends


_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_MARKS = (("\u201c", "\u201d"), ("\u300c", "\u300d"), ("\u300e", "\u300f"), ("\u00ab", "\u00bb"), ('"', '"'))


def is_quoted(text: str, start: int, end: int) -> bool:
    """Do these characters of `text` stand in a code block, a quoted line, or wholly between quotation marks?"""
    fences = [found.start() for found in _FENCE.finditer(text)]
    if bisect_right(fences, start) % 2:
        return True
    line = text.rfind("\n", 0, start) + 1
    if text[line:end].lstrip().startswith(">"):
        return True
    stop = text.find("\n", end)
    before, after = text[line:start], text[end : len(text) if stop < 0 else stop]
    return any(_open(before, opening, closing) and closing in after for opening, closing in _MARKS)


def _open(before: str, opening: str, closing: str) -> bool:
    if opening == closing:
        return before.count(opening) % 2 == 1
    return before.count(opening) > before.count(closing)
