"""What a person changed in the file of a scenario or its skill: it wins over what is derived, and stays. Pure.

What is said of a fact holds in both files.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.events import ScenarioEdited

MARK = re.compile(r"\s*\[([0-9a-f]{8})\]\s*$")
_FRONT = re.compile(r"^(title|status|description):\s*(.*)$")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
MOST_CHARS = 1_000
MOST_NOTES = 500


class Edits(Struct, frozen=True, omit_defaults=True):
    """A title and status given by hand, and a skill's description; atoms (by their marks) taken out or said
    otherwise; lines put in, `notes` in the scenario and `steps` in its skill; each with the event that did it."""

    title: tuple[str, str] = ("", "")
    status: str = ""
    hidden: tuple[str, ...] = ()
    said: dict[str, tuple[str, str]] = {}
    notes: tuple[tuple[str, str], ...] = ()
    steps: tuple[tuple[str, str], ...] = ()
    description: tuple[str, str] = ("", "")


def read(raw: str) -> Edits:
    return msgspec.json.decode(raw, type=Edits)


def edited(edits: Edits, event: str, data: ScenarioEdited, *, skill: bool = False) -> Edits:
    """The edits with one more: lines with a mark are about its atom, the others are notes, or steps of a skill."""
    added = {found[1]: line for line in data.added if (found := MARK.search(line))}
    for line in data.removed:
        found = MARK.search(line)
        if found is not None and found[1] not in added:
            edits = replace(edits, hidden=tuple(dict.fromkeys((*edits.hidden, found[1]))))
        elif found is None:
            gone = _said(line)
            left = tuple(one for one in (edits.steps if skill else edits.notes) if one[1] != gone)
            edits = replace(edits, steps=left) if skill else replace(edits, notes=left)
    for line in data.added:
        edits = _added(edits, event, line, skill=skill)
    return edits


def _added(edits: Edits, event: str, line: str, *, skill: bool) -> Edits:
    front, mark, text = _FRONT.match(line), MARK.search(line), _said(line)
    if front is not None:
        value = _unquoted(front[2])
        if front[1] == "title":
            return replace(edits, title=(event, value))
        if front[1] == "description":
            return replace(edits, description=(event, value)) if skill else edits
        return replace(edits, status=value) if value in ("open", "closed") else edits
    if line.startswith("# ") and text:
        return replace(edits, title=(event, text))
    if mark is not None:
        hidden = tuple(one for one in edits.hidden if one != mark[1])
        return replace(edits, hidden=hidden, said={**edits.said, mark[1]: (event, text)})
    if not text or line.startswith(("---", "## ", "### ")):
        return edits
    if skill:
        return (
            edits if line.startswith("name:") else replace(edits, steps=(*edits.steps, (event, text))[-MOST_NOTES:])
        )
    return replace(edits, notes=(*edits.notes, (event, text))[-MOST_NOTES:])


def united(one: Edits, other: Edits) -> Edits:
    """The edits of a scenario that took over another; its own title and status come first."""
    return Edits(
        title=one.title if one.title[1] else other.title,
        status=one.status,
        hidden=tuple(dict.fromkeys((*one.hidden, *other.hidden))),
        said={**other.said, **one.said},
        notes=(*one.notes, *other.notes)[-MOST_NOTES:],
        steps=(*one.steps, *other.steps)[-MOST_NOTES:],
        description=one.description if one.description[1] else other.description,
    )


def forgotten(edits: Edits, ids: frozenset[str]) -> Edits:
    """Without what the events `ids` put in."""
    return replace(
        edits,
        title=("", "") if edits.title[0] in ids else edits.title,
        said={mark: one for mark, one in edits.said.items() if one[0] not in ids},
        notes=tuple(one for one in edits.notes if one[0] not in ids),
        steps=tuple(one for one in edits.steps if one[0] not in ids),
        description=("", "") if edits.description[0] in ids else edits.description,
    )


def _said(line: str) -> str:
    """The words of a line, without what Markdown is in it."""
    text = MARK.sub("", _ITEM.sub("", line)).removeprefix("# ").strip()
    return _ESCAPED.sub(r"\1", text)[:MOST_CHARS]


def _unquoted(value: str) -> str:
    try:
        return msgspec.json.decode(value.encode("utf-8", "replace"), type=str)[:MOST_CHARS].strip()
    except msgspec.MsgspecError:
        return value.strip().strip("\"'")[:MOST_CHARS]
