"""Counts a chat message of either provider as the model is billed for it, rather a little more than less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from lamina.errors import Invalid
from lamina.tokens.counting import count

MEDIA_TOKENS = 1600
"""Of an image: the most either provider bills at full detail. Of other media: at least this."""

_MEDIA_CHARACTERS = 16  # base64 characters of a document or recording a token is at least worth
_MESSAGE_TOKENS = 4
_PART_TOKENS = 2
_CALL_TOKENS = 8
_IMAGES = ("image", "image_url", "input_image")
_MEDIA = ("document", "file", "input_file", "input_audio", "audio", "video", "video_url")


def count_message(message: Mapping[str, Any]) -> int:
    """The tokens of one OpenAI or Anthropic message: text, calls, results, thinking, media, unknown parts.

    A part or key it does not know counts as the JSON it is sent as. Raises `Invalid` for what is no JSON.
    """
    total = _MESSAGE_TOKENS
    for key, value in message.items():
        if key == "content":
            total += _content(value)
        elif key == "tool_calls" and isinstance(value, list):
            total += sum(_call(item) for item in value)
        elif key != "role" and value is not None:
            total += count(value) if isinstance(value, str) else _json(value)
    return total


def count_messages(messages: Iterable[Mapping[str, Any]]) -> int:
    """The tokens of a prompt: its messages and the three that open the answer."""
    return 3 + sum(map(count_message, messages))


def _content(value: object, *, nested: bool = False) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return count(value)
    if isinstance(value, list):
        return sum(_part(part, nested=nested) for part in value)
    return _json(value)


def _part(part: object, *, nested: bool) -> int:
    if not isinstance(part, Mapping):
        return _PART_TOKENS + (count(part) if isinstance(part, str) else _json(part))
    kind = part.get("type")
    if kind in _IMAGES:
        return _PART_TOKENS + MEDIA_TOKENS
    if kind in _MEDIA:
        return _PART_TOKENS + max(MEDIA_TOKENS, len(_encode(part)) // _MEDIA_CHARACTERS)
    total = _PART_TOKENS
    for key, value in part.items():
        if key == "content" and not nested:
            total += _content(value, nested=True)
        elif key == "input":
            total += _CALL_TOKENS + _json(value)
        elif key != "type" and value is not None:
            total += count(value) if isinstance(value, str) else _json(value)
    return total


def _call(call: object) -> int:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        return _json(call)
    rest = {key: value for key, value in call.items() if key not in ("type", "function")}
    strings = [*function.values(), *rest.values()]
    return _CALL_TOKENS + sum(count(item) if isinstance(item, str) else _json(item) for item in strings)


def _json(value: object) -> int:
    return count(_encode(value).decode())


def _encode(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"a message must be plain JSON: {error}") from error
