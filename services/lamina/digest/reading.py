"""Reading a result back: exact lines, the best passages for a query, or a symbol's whole body.

Everything is found with `str.find` and `str.count`, so a text of 50 MB takes milliseconds; no pattern a caller
gives is ever run as a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from lamina.digest import search, symbols
from lamina.errors import Invalid

CHARS_PER_TOKEN = 3  # of ASCII text, on the safe side for code; other scripts count one token a character
LEAST_CHARS = 200  # shown of a passage whatever the budget is
_RANGE = re.compile(r"\s*(\d{1,12})?\s*(-)?\s*(\d{1,12})?\s*")
_CONTINUED = re.compile(r"\s*(\d{1,12})@(\d{1,12})\s*")


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """What `read` found.

    `text` is the rendering, `number|line` with `…` for what lies between; `exact` the same lines as they stand, so
    that reading 1 to `total_lines` gives back the original. `ranges` are the lines shown, from 1, both ends included.
    `omitted` says what was left out and how to get it; it is empty when nothing was.
    """

    text: str
    exact: str
    ranges: tuple[tuple[int, int], ...]
    total_lines: int
    omitted: str = ""


def read(
    text: str,
    *,
    query: str | None = None,
    lines: str | None = None,
    symbol: str | None = None,
    max_tokens: int = 1600,
) -> Passage:
    """Read `text` by `query`, by `lines` (`"40"`, `"10-40"`, `"10-"`), by `symbol` (`"Foo.bar"`), or from its start.

    A word that stands in the text is found and shown. At least one passage is shown, so a tiny budget may be passed
    by some 200 characters. Raises `Invalid` for a malformed or empty range, an unknown symbol, or two ways at once.
    """
    given = [name for name, value in (("query", query), ("lines", lines), ("symbol", symbol)) if value is not None]
    if len(given) > 1:
        raise Invalid(f"read takes one of query, lines and symbol; {' and '.join(given)} were given: drop one")
    if max_tokens < 1:
        raise Invalid(f"max_tokens is {max_tokens}; it must be at least 1")
    book = Book(text, max_tokens)
    if query is not None:
        return book.by_query(query)
    if symbol is not None:
        return book.by_symbol(symbol)
    return book.by_lines("1-" if lines is None else lines)


def cost(text: str) -> int:
    """Tokens of `text` in thirds, an estimate on the safe side."""
    return len(text) if text.isascii() else len(text) + 2 * sum(1 for char in text if char > "\x7f")


class Book:
    """A text and a budget; each way of reading is one method."""

    def __init__(self, text: str, max_tokens: int) -> None:
        self.text = text
        self.budget = max_tokens * CHARS_PER_TOKEN
        self.total = text.count("\n") + 1

    def by_lines(self, wanted: str) -> Passage:
        """Whole lines of a range, as many as the budget holds."""
        continued = _CONTINUED.fullmatch(wanted)
        if continued:
            return self._window(int(continued[1]), int(continued[2]))
        match = _RANGE.fullmatch(wanted)
        if match is None or not (match[1] or match[3]):
            raise Invalid(f'lines is {wanted[:40]!r}; write "40", "10-40" or "10-"')
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else self.total if match[2] else first
        if first < 1 or last < first:
            raise Invalid(f"lines {wanted.strip()} is an empty range; lines count from 1, the smaller number first")
        if first > self.total:
            raise Invalid(f"lines {wanted.strip()} lies behind the end: there are {self.total} lines")
        return self._range(first, min(last, self.total))

    def by_symbol(self, symbol: str) -> Passage:
        """The whole body of the best definition of `symbol`."""
        name = re.split(r"\.|::|#|/", symbol.strip())[-1]
        if not name:
            raise Invalid('symbol is empty; write a name as it stands in the code: symbol="Foo.bar"')
        all_lines = self.text.split("\n")
        holding = search.lines_with(self.text, name)
        found = symbols.find(all_lines, [number - 1 for number in holding], symbol.strip())
        if found is None:
            hint = f'it is named on line {holding[0]}: read query="{name}"' if holding else "the name does not occur"
            raise Invalid(f"no definition of {symbol[:80]!r} in these {self.total} lines; {hint}")
        return self._range(found.first, found.last)

    def by_query(self, query: str) -> Passage:
        """The passages that show the words of the query, rarest first, with lines around them."""
        hits = search.hits(self.text, query)
        if not hits:
            return Passage(
                text="",
                exact="",
                ranges=(),
                total_lines=self.total,
                omitted=f'nothing in {self.total} lines matches {query[:80]!r}; try another word or lines="1-40"',
            )
        chosen: list[search.Excerpt] = []
        left = self.budget
        passed = 0
        for excerpt in search.excerpts(self.text, hits, max(LEAST_CHARS, self.budget // 2)):
            price = cost(excerpt.rendered)
            if chosen and price > left:
                passed += 1
                continue
            chosen.append(excerpt)
            left -= price
        return self._passages(chosen, passed, query)

    def _passages(self, chosen: Sequence[search.Excerpt], passed: int, query: str) -> Passage:
        ordered = search.merged(self.text, chosen)
        ranges = tuple((excerpt.first, excerpt.last) for excerpt in ordered)
        shown = sum(last - first + 1 for first, last in ranges)
        omitted = f"{self.total - shown} of {self.total} lines are not shown" if shown < self.total else ""
        if passed:
            omitted += f'; {passed} more passages match {query[:40]!r}: raise max_tokens or read lines="a-b"'
        elif omitted:
            omitted += '; read lines="a-b" for what lies around'
        return Passage(
            text="\n…\n".join(excerpt.rendered for excerpt in ordered),
            exact="\n".join(excerpt.exact for excerpt in ordered),
            ranges=ranges,
            total_lines=self.total,
            omitted=omitted,
        )

    def _range(self, first: int, last: int) -> Passage:
        start = search.line_start(self.text, first)
        rendered: list[str] = []
        left, at, number = self.budget, start, first
        while number <= last:
            end = self.text.find("\n", at)
            stop = len(self.text) if end < 0 else end
            if stop - at > left and not rendered:
                return self._window(number, 1, last)
            line = f"{number}|{self.text[at:stop]}"
            price = cost(line) + 1
            if price > left and rendered:
                break
            rendered.append(line)
            left -= price
            at, number = stop + 1, number + 1
        done = number - 1
        return Passage(
            text="\n".join(rendered),
            exact=self.text[start : min(at, len(self.text))],
            ranges=((first, done),),
            total_lines=self.total,
            omitted=f'lines {number}-{last} of {self.total}: read lines="{number}-{last}"' if done < last else "",
        )

    def _window(self, number: int, column: int, last: int | None = None) -> Passage:
        """Part of one very long line, from `column` (1 is the first character)."""
        if number < 1 or number > self.total:
            raise Invalid(f"line {number} does not exist: there are {self.total} lines")
        start = search.line_start(self.text, number)
        end = self.text.find("\n", start)
        stop = len(self.text) if end < 0 else end
        if column < 1 or start + column - 1 > stop:
            raise Invalid(f"line {number} has {stop - start} characters; {column} lies behind them")
        begin = start + column - 1
        shown = self.text[begin : min(stop, begin + max(self.budget, LEAST_CHARS))]
        while len(shown) > LEAST_CHARS and cost(shown) > self.budget:
            shown = shown[: len(shown) // 2]
        upto = column + len(shown)
        rest = stop - begin - len(shown)
        notes = [f'{rest} characters of line {number}: read lines="{number}@{upto}"'] if rest else []
        if last is not None and last > number:
            notes.append(f'lines {number + 1}-{last}: read lines="{number + 1}-{last}"')
        mark = f"{number}|" + ("…" if column > 1 else "")
        return Passage(
            text=f"{mark}{shown}{'…' if rest else ''}",
            exact=shown,
            ranges=((number, number),),
            total_lines=self.total,
            omitted="; ".join(notes),
        )
