"""What a kind of content says about its lines: how much they count, and which come first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.digest.text import Line, Lines


class Call(NamedTuple):
    """The call behind a result, as far as it helps to tell kinds apart and to rate lines."""

    tool: str
    arguments: str  # the values, joined by blanks
    is_error: bool


class Plan(NamedTuple):
    """`label` names the kind (and its shape) in the stub; `factors` weigh the lines; `lead` are shown first.

    `whole` lines are shown whole, not by their new words; `extra` characters are what this kind needs beyond the
    usual; `names` is the exponent of a line's factor on its names (below 1: a name in a faint line is still a name).
    """

    label: str
    factors: list[float]
    lead: list[int]
    whole: bool = False
    extra: int = 0
    names: float = 1.0


class Content(NamedTuple):
    """What the kinds look at: the text, its lines, and the call."""

    text: str
    lines: Lines
    call: Call


def any_of(*words: str) -> str:
    """A pattern for any of the words, given as texts with blanks between."""
    return "|".join(re.escape(word) for text in words for word in text.split())


MASK = re.compile(r"\d+|0x[0-9a-f]+|[0-9a-f]{8,}")
PROBED = 400  # lines looked at to tell the kind


def call_of(tool: str, arguments: Mapping[str, object], is_error: bool) -> Call:
    """The call with the values of its arguments as one text."""
    return Call(tool, " ".join(str(value) for value in arguments.values()), is_error)


def probe(lines: Sequence[Line]) -> Sequence[Line]:
    """At most `PROBED` lines, from the beginning and the end."""
    if len(lines) <= PROBED:
        return lines
    return [*lines[: PROBED // 2], *lines[-PROBED // 2 :]]


def share(lines: Sequence[Line], pattern: re.Pattern[str]) -> float:
    """The share of the probed lines that `pattern` matches at their beginning."""
    probed = probe(lines)
    return sum(1 for line in probed if pattern.match(line.body)) / max(1, len(probed))


def repeats(lines: Sequence[Line]) -> list[bool]:
    """Which lines say what an earlier line said, numbers aside."""
    seen: set[str] = set()
    found: list[bool] = []
    for line in lines:
        shape = MASK.sub("0", line.body[:200])
        found.append(shape in seen)
        seen.add(shape)
    return found
