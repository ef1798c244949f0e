"""Single values of foreign logs in our terms: roles, times, ids, names of conversations."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePath

from lamina import times
from lamina.errors import Invalid, TooLarge
from lamina.events import ROLES
from lamina.ids import token
from lamina.importer.records import Json

_ROLES = {
    **{role: role for role in ROLES},
    "human": "user",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "function_call": "assistant",
    "developer": "system",
    "function": "tool",
    "observation": "tool",
    "tool_result": "tool",
}


def role(value: Json) -> str:
    """The role that a foreign role name stands for; `Invalid` names the known ones."""
    found = _ROLES.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise Invalid(f"role {_short(value)} is unknown; known are {', '.join(sorted(_ROLES))}")
    return found


def when(value: Json) -> datetime | None:
    """A time: RFC 3339 text with an offset, or a number of Unix seconds; null is None, all else `Invalid`."""
    if value is None:
        return None
    if isinstance(value, str):
        return times.parse(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise Invalid(f"{value} is no time in Unix seconds") from error
    raise Invalid(f"a time is RFC 3339 text or Unix seconds, not {_short(value)}")


def utc(text: Json, *formats: str) -> datetime | None:
    """A naive time of a data set that defines no zone, taken as UTC; None where no format fits."""
    if isinstance(text, str):
        for form in formats:
            try:
                return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
            except ValueError:
                continue
    return None


def ident(value: Json) -> str:
    """An id given as text or whole number, as text; the empty text where none is given."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None:
        return ""
    raise Invalid(f"an id is text or a whole number, not {_short(value)}")


def optional_text(value: Json, what: str) -> str | None:
    """Text or null, as it is; `Invalid` names `what` is neither."""
    if value is None or isinstance(value, str):
        return value
    raise Invalid(f"{what} must be text, not {_short(value)}")


def text(value: Json, what: str) -> str:
    """Text as it is; `Invalid` names `what` is missing or of another type."""
    if isinstance(value, str):
        return value
    raise Invalid(f"{what} must be text, not {_short(value)}" if value is not None else f"{what} is missing")


def objects(value: Json, what: str) -> list[Json]:
    """A list as it is; `Invalid` names `what` is missing or of another type."""
    if isinstance(value, list):
        return value
    raise Invalid(f"{what} must be a list, not {_short(value)}" if value is not None else f"{what} is missing")


def mapping(value: Json, what: str) -> dict[str, Json]:
    """An object as it is; `Invalid` names `what` is something else."""
    if isinstance(value, dict):
        return value
    raise Invalid(f"{what} must be an object, not {_short(value)}")


@lru_cache(maxsize=1024)
def bounded(name: str) -> str:
    """`name` where it is short enough for a session, agent or project; else its beginning, `~`, and 16
    hexadecimal digits of its SHA-256: long names stay apart and stay the same at every import."""
    try:
        token(name)
    except TooLarge:
        tail = "~" + hashlib.sha256(name.encode()).hexdigest()[:16]
        head = name[:100]
        while not _fits(head + tail):
            head = head[:-1]
        return head + tail
    return name


def stem(file: str) -> str:
    """The name that a file gives to a conversation without an id: its base name without folder and endings."""
    base = os.fsencode(PurePath(file).name).decode("utf-8", "replace")
    for ending in (".gz", ".jsonl", ".ndjson", ".json", ".traj"):
        if base.lower().endswith(ending) and len(base) > len(ending):
            base = base[: -len(ending)]
    return base if base != "-" else "stdin"


def _fits(name: str) -> bool:
    try:
        token(name)
    except TooLarge:
        return False
    return True


def _short(value: Json) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
