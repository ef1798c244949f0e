"""Short texts of the canvas: what a call was about, and labels that no Mermaid parser can trip over."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

_READ_CHARACTERS = 20_000  # of a text that terms or labels are taken from
_LINE_CHARACTERS = 1_000  # of the line a subject is taken from
_TERM = re.compile(r"[^\W\d][\w./:@-]{3,79}")
_PATH = re.compile(r"(?<![\w.@/-])(?:[\w.@-]{0,80}/[\w./@-]{1,200}|[\w-]{1,80}\.[A-Za-z]{1,5}\b)")
_MARKS = str.maketrans({'"': "'", "`": "'", ";": ",", "<": "\u2039", ">": "\u203a", "\\": "/"})
_LIST_MARK = re.compile(r"^(?:[-*+#>]+|\d+[.)])\s+")


def label(text: str, width: int) -> str:
    """`text` on one line, at most `width` columns wide (a Han, Kana or Hangul character is two), quotable.

    Quotes, backticks, semicolons, angle brackets and doubled percent signs, which Mermaid reads even inside a
    quoted label, become their nearest harmless likeness; control and format characters and surrogates go.
    """
    text = "".join(_harmless(character) for character in text[: 8 * width + 200])
    text = re.sub("%{2,}", "%", " ".join(text.translate(_MARKS).split()))
    return _cut(_LIST_MARK.sub("", text), width).strip()


def _harmless(character: str) -> str:
    kind = unicodedata.category(character)
    return " " if kind in ("Cc", "Zl", "Zp") else "" if kind in ("Cf", "Cs", "Co", "Cn") else character


def _cut(text: str, width: int) -> str:
    used = 0
    for at, character in enumerate(text):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > width:
            return text[: max(0, at - 1)] + "\u2026"
    return text


def subject(tool: str, arguments: str, width: int) -> str:
    """What a call was about: the path in its arguments (JSON or plain text), else their first string."""
    values = [value for value in strings(arguments) if value.strip()]
    if not values:
        return ""
    first = values[0].strip()
    if first.split(None, 1)[0] == tool:
        first = first[len(tool) :].strip()
    line = first.split("\n", 1)[0][:_LINE_CHARACTERS]
    path = _PATH.search(line)
    if path is None and len(values) > 1:
        path = next((found for found in map(_PATH.fullmatch, values[1:4]) if found), None)
    if path is not None and len(path.group()) > width // 2:
        line = _short_path(path.group())
    return label(line, width)


def _short_path(path: str) -> str:
    parts = path.rstrip("/").split("/")
    return "/".join(["\u2026", *parts[-2:]]) if len(parts) > 2 else path


def strings(arguments: str) -> Iterator[str]:
    """The strings and numbers in a call's arguments, outermost first; of plain text, the text."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        yield arguments[:_READ_CHARACTERS]
        return
    waiting = [value]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, str):
            yield value[:_READ_CHARACTERS]
        elif isinstance(value, bool | int | float):
            yield str(value)
        elif isinstance(value, dict):
            waiting += list(value.values())[:20]
        elif isinstance(value, list):
            waiting += value[:20]


def terms(text: str, most: int) -> tuple[str, ...]:
    """The first paths and identifiers in `text`: words that are hardly said by chance."""
    found = dict.fromkeys(match.group().rstrip(".:-") for match in _TERM.finditer(text[:_READ_CHARACTERS]))
    telling = [word for word in found if _telling(word)]
    paths = [word for word in telling if "/" in word]
    return tuple(dict.fromkeys([*paths[:most], *telling]))[:most]


def _telling(word: str) -> bool:
    """A path, a dotted or underscored name, or one in mixed case or with a digit inside."""
    inner = word[1:]
    marked = any(mark in inner for mark in "/._:") and not word.endswith(":")
    mixed = any(character.isupper() for character in inner) and not word.isupper()
    return len(word) > 3 and (marked or mixed or any(character.isdigit() for character in inner))
