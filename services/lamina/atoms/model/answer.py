"""From what a model wrote to the items it meant: prose and fences around them, broken ends, doubtful items."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from msgspec import Struct

MAX_CHARS = 400_000
MAX_ITEMS = 1_000
"""An answer of more is a loop."""
MAX_STARTS = 50
"""How many brackets are tried before an answer counts as having no list."""
_THOUGHT = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[a-zA-Z0-9]*\s*\n?")
_GAP = re.compile(r"[\s,]*")


class Unreadable(ValueError):
    """There is no list of items in the answer, or only part of one; the message says which."""


class Listed(Struct, frozen=True, kw_only=True):
    """The items of an answer, as JSON values. `doubtful`: items that JSON reads in more than one way, left out.

    `cut`: the answer ends within the list; what stands before is whole.
    """

    items: tuple[dict[str, Any], ...]
    doubtful: int = 0
    cut: bool = False


class _Doubtful(dict[str, Any]):
    """An object in which a key stands twice, or a number is none."""


def listed(text: str, name: str) -> Listed:
    """The items under `name` in a model's answer, or of the bare list that it is.

    Prose, fences and thoughts around them are passed over. `Unreadable` where there is no such list, or two.
    """
    if len(text) > MAX_CHARS:
        raise Unreadable(f"an answer of {len(text)} characters; at most {MAX_CHARS} are read")
    body = _FENCE.sub("", _THOUGHT.sub("", text)).strip()
    named = re.compile(rf'"{name}"\s*:\s*\[')
    found = named.search(body)
    if found is not None:
        read, end = _list_at(body, found.end())
        if named.search(body, end):
            raise Unreadable(f"the answer has {name!r} twice: nobody knows which is meant")
        return read
    if body == "[]":
        return Listed(items=())
    for bracket in islice(re.finditer(r"\[\s*\{", body), MAX_STARTS):
        read, _ = _list_at(body, bracket.start() + 1)
        if read.items:
            return read
    raise Unreadable(f"no JSON list of {name}: {' '.join(text[:200].split())}")


def _list_at(body: str, at: int) -> tuple[Listed, int]:
    """The objects of the list that begins at `at`, and where it ends."""
    items: list[dict[str, Any]] = []
    doubtful = 0
    while not body.startswith("]", at := _gap(body, at)):
        try:
            item, at = _decoder.raw_decode(body, at)
        except (ValueError, RecursionError):  # also of a number of too many digits
            return Listed(items=tuple(items), doubtful=doubtful, cut=True), at
        if isinstance(item, dict) and not _in_doubt(item):
            items.append({key: value for key, value in item.items() if value is not None})
        else:
            doubtful += 1
        if len(items) + doubtful > MAX_ITEMS:
            raise Unreadable(f"more than {MAX_ITEMS} items")
    return Listed(items=tuple(items), doubtful=doubtful), at


def _gap(body: str, at: int) -> int:
    found = _GAP.match(body, at)
    return found.end() if found else at


def _in_doubt(value: Any) -> bool:
    if isinstance(value, _Doubtful):
        return True
    if isinstance(value, dict):
        return any(map(_in_doubt, value.values()))
    return any(map(_in_doubt, value)) if isinstance(value, list) else value is _NOT_A_NUMBER


_NOT_A_NUMBER = object()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Doubtful(made)


def _constant(_: str) -> Any:
    return _NOT_A_NUMBER


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, strict=False)
