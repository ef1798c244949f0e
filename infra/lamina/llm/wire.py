"""Reading what an endpoint sent: bounded, and believed only where it has the promised shape."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Struct

MAX_ANSWER_BYTES = 512 * 1024
MAX_USAGE = 10_000_000
"""Tokens one call may say to have used; what is above is no count."""
_LONE = re.compile("[\ud800-\udfff]")


class Said(Struct, frozen=True, kw_only=True):
    """One answer. `tokens` is None where the endpoint does not tell; `why` says why there is no text to use."""

    text: str
    finish: str
    model: str = ""
    tokens: int | None = None
    refusal: str = ""


class NotAnAnswer(ValueError):
    """The bytes are no chat completion; the message says what they are."""


class _Usage(Struct):
    total_tokens: object = None
    prompt_tokens: object = None
    completion_tokens: object = None


class _Message(Struct):
    content: object = None
    refusal: object = None


class _Choice(Struct):
    message: _Message | None = None
    finish_reason: object = None


class _Body(Struct):
    choices: list[_Choice] | None = None
    model: object = None
    usage: object = None
    error: object = None


def read(raw: bytes) -> Said:
    """The first choice of a chat completion. `NotAnAnswer` for anything else; its tokens are `spent(raw)`."""
    try:
        body = _body(raw)
    except (ValueError, RecursionError) as error:
        raise NotAnAnswer(f"no chat completion ({error}): {shown(raw)}") from error
    if body.error and not body.choices:
        raise NotAnAnswer(f"an error instead of an answer: {shown(raw)}")
    if not body.choices or body.choices[0].message is None:
        raise NotAnAnswer("an answer without choices")
    choice = body.choices[0]
    message = choice.message or _Message()
    return Said(
        text=_text(message.content),
        finish=choice.finish_reason if isinstance(choice.finish_reason, str) else "",
        model=whole(body.model)[:200] if isinstance(body.model, str) else "",
        tokens=_tokens(body.usage),
        refusal=_text(message.refusal)[:300],
    )


def spent(raw: bytes) -> int | None:
    """The tokens that any answer, an error too, says to have used; None where it does not."""
    try:
        return _tokens(_body(raw).usage)
    except (ValueError, RecursionError):
        return None


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float:
    """What `Retry-After` asks for, as seconds or as a date; 0 where it is missing or makes no sense."""
    said = headers.get("retry-after", "").strip()
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(said).timestamp() - now_s
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def shown(raw: bytes) -> str:
    """The beginning of an answer, on one line, for a message."""
    return " ".join(raw[:400].decode("utf-8", "replace").split())[:200]


def whole(text: str) -> str:
    """`text` with what is no Unicode text replaced: an answer becomes part of an event."""
    return _LONE.sub("\ufffd", text)


def _body(raw: bytes) -> _Body:
    """Half a surrogate pair, which a model's text may hold, is read too; msgspec's own decoder refuses it."""
    return msgspec.convert(json.loads(raw.decode()), _Body)


def _text(content: object) -> str:
    """The text of a message: a string, or the texts of its parts."""
    if isinstance(content, str):
        return whole(content)
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return whole("".join(part for part in parts if isinstance(part, str)))
    return ""


def _tokens(usage: object) -> int | None:
    try:
        counted = msgspec.convert(usage, _Usage)
    except msgspec.ValidationError:
        return None
    total = _count(counted.total_tokens)
    if total is not None:
        return total
    asked, answered = _count(counted.prompt_tokens), _count(counted.completion_tokens)
    return None if asked is None or answered is None else asked + answered


def _count(value: object) -> int | None:
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_USAGE
    return int(value) if counts and isinstance(value, int) else None
