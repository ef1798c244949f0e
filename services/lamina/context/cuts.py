"""The ways a message is made smaller. Each returns a new message, keeps every key it does not know, and does
nothing to a message it has been applied to before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lamina.context.shapes import Message, Observation, content_text, is_thinking, to_json
from lamina.tokens import count

ARGUMENT_CHARACTERS = 400  # a longer string in a call's arguments can be cut
_SHOWN_CHARACTERS = 120
_DEPTH = 32  # of nested arguments; deeper ones stay as they are


def line(node: str) -> str:
    """The least that stands for a result: where it is."""
    return f"[{node}: kept in memory; read {node} to see it]"


def current_text(message: Message, observation: Observation) -> str:
    """What the message now says in the place of this result."""
    return content_text(_holder(message, observation).get("content"))[0]


def with_text(message: Message, observation: Observation, text: str) -> dict[str, Any]:
    """The message with `text` in the place of this result; marks of its last part (cache_control) stay."""
    holder = _holder(message, observation)
    content: object = text
    parts = holder.get("content")
    if isinstance(parts, list) and parts and parts[-1].get("type") == "text" and len(parts[-1]) > 2:
        content = [{**parts[-1], "text": text}]
    if observation.part is None:
        return {**message, "content": content}
    blocks = list(message["content"])
    blocks[observation.part] = {**holder, "content": content}
    return {**message, "content": blocks}


def window(text: str, node: str, limit: int) -> str:
    """The first and last whole lines of `text` that fit `limit` tokens around a note that says how to read the rest.

    A single line that is longer is cut inside. A text that fits is returned as it is; one that cannot shrink to
    the limit becomes `line(node)`.
    """
    if count(text) <= limit:
        return text
    characters = len(text)
    while characters > 16:
        characters = characters * 3 // 4
        shorter = _ends(text, node, characters)
        if count(shorter) <= limit:
            return shorter
    return line(node)


def _ends(text: str, node: str, characters: int) -> str:
    head, tail = text[: characters * 2 // 3], text[len(text) - characters // 3 :]
    if "\n" in head:
        head = head[: head.rindex("\n") + 1]
    if "\n" in tail:
        tail = tail[tail.index("\n") + 1 :]
    first = head.count("\n") + 1
    hidden = text[len(head) : len(text) - len(tail)]
    last = first + hidden.removesuffix("\n").count("\n")
    note = f"[lines {first}-{last} are not shown: read {node} lines={first}-{last}]"
    return f"{head}{'' if head.endswith(chr(10)) else chr(10)}{note}\n{tail}"


def with_short_arguments(message: Message, observation: Observation, node: str) -> dict[str, Any]:
    """The assistant message with long strings in the arguments of this call cut to their beginning."""
    if observation.part is None:
        calls = list(message["tool_calls"])
        call = calls[observation.call]
        kind = call.get("type", "function")
        field = "arguments" if "arguments" in call[kind] else "input"
        short = _short_json(observation.arguments, node) if field == "arguments" else _short(call[kind][field], node)
        calls[observation.call] = {**call, kind: {**call[kind], field: short}}
        return {**message, "tool_calls": calls}
    blocks = [
        {**part, "input": _short(part.get("input", {}), node)} if part.get("id") == observation.call_id else part
        for part in message["content"]
    ]
    return {**message, "content": blocks}


def _short_json(arguments: str, node: str) -> str:
    if len(arguments) <= ARGUMENT_CHARACTERS:
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return to_json({"cut": _short(arguments, node)})
    short = _short(value, node)
    return arguments if short == value else to_json(short)


def _short(value: object, node: str, depth: int = _DEPTH) -> object:
    if isinstance(value, str) and len(value) > ARGUMENT_CHARACTERS:
        rest = len(value) - _SHOWN_CHARACTERS
        return f"{value[:_SHOWN_CHARACTERS]} [{rest} more characters: read {node}]"
    if isinstance(value, Mapping) and depth:
        return {key: _short(item, node, depth - 1) for key, item in value.items()}
    if isinstance(value, list) and depth:
        return [_short(item, node, depth - 1) for item in value]
    return value


def without_thinking(message: Message) -> dict[str, Any]:
    """The assistant message without its reasoning, unless nothing else is in it."""
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    kept = [part for part in content if not is_thinking(part)]
    return {**message, "content": kept} if kept else dict(message)


def _holder(message: Message, observation: Observation) -> Message:
    holder: Message = message if observation.part is None else message["content"][observation.part]
    return holder
