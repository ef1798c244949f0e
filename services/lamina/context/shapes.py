"""Reads an OpenAI or Anthropic message list into exchanges: an assistant message and all that answers it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NoReturn, TypeAlias

import msgspec

from lamina.errors import Invalid

Message: TypeAlias = Mapping[str, Any]

_SYSTEM = ("system", "developer")
_ROLES = (*_SYSTEM, "user", "assistant", "tool", "function")
_THINKING = ("thinking", "redacted_thinking")


class Provider(StrEnum):
    """Whose rules a list follows. PLAIN has no calls in it and is valid for both."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    PLAIN = "plain"


class Observation(msgspec.Struct, frozen=True):
    """One tool result where it stands in the list, with the call it answers.

    `key` is the call id, or the call id and a number where a host has used an id twice: what is recorded for
    this result must be kept under `key`. `text` is the whole result; of one that is not all text, its JSON.
    """

    key: str
    call_id: str
    tool: str
    arguments: str
    text: str
    is_error: bool
    is_text: bool
    exchange: int
    call: int
    index: int
    part: int | None


class Exchange(msgspec.Struct, frozen=True):
    """The messages `start` to `end` (exclusive): one assistant message, its results, what the user said then."""

    start: int
    end: int
    observations: tuple[Observation, ...]


class Conversation(msgspec.Struct, frozen=True):
    """`head` messages before the first assistant message (system prompt and goal), then the exchanges."""

    provider: Provider
    head: int
    exchanges: tuple[Exchange, ...]


class _Call(msgspec.Struct, frozen=True):
    call_id: str
    tool: str
    arguments: str
    position: int


def read(messages: Sequence[Message]) -> Conversation:
    """Find provider, head and exchanges. Raises `Invalid` naming index and field for a list no provider takes."""
    _check(messages)
    provider = _provider(messages)
    starts = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    head = starts[0] if starts else len(messages)
    for index in range(head):
        _no_result(messages[index], index)
    seen: Counter[str] = Counter()
    exchanges = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(messages)], strict=False)):
        calls = _calls(messages[start], start, provider)
        found = _results(messages, start, end, calls, provider)
        observations = tuple(_observation(call, number, place, messages, seen) for call, place in found)
        exchanges.append(Exchange(start=start, end=end, observations=observations))
    return Conversation(provider=provider, head=head, exchanges=tuple(exchanges))


def fingerprint(value: object) -> str:
    """A short name for what a text or message says."""
    return hashlib.sha256(to_json(value).encode()).hexdigest()[:16]


def is_system(message: Message) -> bool:
    """Whether the message is the host's, not the user's or the model's."""
    return message["role"] in _SYSTEM


def is_thinking(part: object) -> bool:
    """Whether the content part is the model's own reasoning."""
    return isinstance(part, Mapping) and part.get("type") in _THINKING


def says_something(message: Message) -> bool:
    """Whether a user message holds more than tool results."""
    if message["role"] != "user":
        return False
    content = message.get("content")
    if isinstance(content, list):
        return any(part.get("type") != "tool_result" for part in content)
    return bool(content)


def _fail(index: int, field: str, reason: str) -> NoReturn:
    raise Invalid(f"messages[{index}].{field}: {reason}")


def _check(messages: Sequence[Message]) -> None:
    if not isinstance(messages, list | tuple):
        raise Invalid(f"messages: a list is needed, not {type(messages).__name__}")
    if not messages:
        raise Invalid("messages: the list is empty")
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not all(isinstance(key, str) for key in message):
            raise Invalid(f"messages[{index}]: an object with string keys is needed")
        if message.get("role") not in _ROLES:
            _fail(index, "role", f"one of {', '.join(_ROLES)} is needed")
        content = message.get("content")
        if content is not None and not isinstance(content, str | list):
            _fail(index, "content", f"a string or a list of parts is needed, not {type(content).__name__}")
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
                _fail(index, f"content[{number}]", "an object with a type is needed")
        if message.get("tool_calls") is not None and not isinstance(message["tool_calls"], list):
            _fail(index, "tool_calls", "a list is needed")


def _provider(messages: Sequence[Message]) -> Provider:
    openai: int | None = None
    anthropic: int | None = None
    thinks = False
    for index, message in enumerate(messages):
        if message["role"] in ("tool", "function", "developer") or message.get("tool_calls"):
            openai = index if openai is None else openai
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part["type"] in ("tool_use", "tool_result"):
                anthropic = index if anthropic is None else anthropic
            thinks = thinks or is_thinking(part) or "source" in part
    if openai is not None and anthropic is not None:
        raise Invalid(f"messages[{openai}] is OpenAI's and messages[{anthropic}] Anthropic's: one list, one provider")
    if openai is not None:
        return Provider.OPENAI
    return Provider.ANTHROPIC if anthropic is not None or thinks else Provider.PLAIN


def _no_result(message: Message, index: int) -> None:
    if message["role"] == "tool":
        _fail(index, "tool_call_id", "this result answers no call of the assistant message before it")
    for number, part in enumerate(message["content"] if isinstance(message.get("content"), list) else ()):
        if part["type"] == "tool_result":
            _fail(index, f"content[{number}].tool_use_id", "this result answers no call of the message before it")


def _calls(message: Message, index: int, provider: Provider) -> dict[str, _Call]:
    if provider is Provider.OPENAI:
        found = [_openai_call(item, index, i) for i, item in enumerate(message.get("tool_calls") or ())]
    else:
        parts = message["content"] if isinstance(message.get("content"), list) else ()
        found = [_anthropic_call(part, index, i) for i, part in enumerate(parts) if part["type"] == "tool_use"]
    calls = {call.call_id: call for call in found}
    if len(calls) != len(found):
        _fail(index, "tool_calls" if provider is Provider.OPENAI else "content", "two calls have one id")
    return calls


def _openai_call(item: object, index: int, position: int) -> _Call:
    field = f"tool_calls[{position}]"
    if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
        _fail(index, field, "an object with an id is needed")
    kind = item.get("type", "function")
    body = item.get(kind) if isinstance(kind, str) else None
    name = body.get("name") if isinstance(body, Mapping) else None
    arguments = body.get("arguments", body.get("input", "")) if isinstance(body, Mapping) else None
    if not isinstance(name, str) or not isinstance(arguments, str):
        _fail(index, f"{field}.{kind}", "a name and arguments as a string are needed")
    return _Call(call_id=item["id"], tool=name, arguments=arguments, position=position)


def _anthropic_call(part: Message, index: int, position: int) -> _Call:
    if not isinstance(part.get("id"), str) or not isinstance(part.get("name"), str):
        _fail(index, f"content[{position}]", "a tool_use needs id and name")
    return _Call(call_id=part["id"], tool=part["name"], arguments=to_json(part.get("input", {})), position=position)


_Place: TypeAlias = tuple[int, int | None]


def _results(
    messages: Sequence[Message], start: int, end: int, calls: Mapping[str, _Call], provider: Provider
) -> list[tuple[_Call, _Place]]:
    waiting = dict(calls)
    found: list[tuple[_Call, _Place]] = []
    for index in range(start + 1, end):
        before = len(found)
        if provider is Provider.OPENAI and messages[index]["role"] == "tool":
            found.append((_take(waiting, messages[index].get("tool_call_id"), index, "tool_call_id"), (index, None)))
        elif index == start + 1 and isinstance(messages[index].get("content"), list):
            found += [
                (_take(waiting, part.get("tool_use_id"), index, f"content[{i}].tool_use_id"), (index, i))
                for i, part in enumerate(messages[index]["content"])
                if part["type"] == "tool_result"
            ]
        else:
            _no_result(messages[index], index)
        if len(found) == before and waiting:
            break
    if waiting:
        field = "tool_calls" if provider is Provider.OPENAI else "content"
        _fail(start, field, f"the call {next(iter(waiting))!r} has no result right after it")
    return found


def _take(waiting: dict[str, _Call], call_id: object, index: int, field: str) -> _Call:
    call = waiting.pop(call_id, None) if isinstance(call_id, str) else None
    if call is None:
        _fail(index, field, "this result answers no call of the assistant message before it")
    return call


def _observation(
    call: _Call, exchange: int, place: _Place, messages: Sequence[Message], seen: Counter[str]
) -> Observation:
    index, part = place
    holder: Message = messages[index] if part is None else messages[index]["content"][part]
    content = holder.get("content")
    if isinstance(content, list) and not all(isinstance(item, Mapping) for item in content):
        _fail(index, "content" if part is None else f"content[{part}].content", "parts must be objects")
    text, is_text = content_text(content)
    seen[call.call_id] += 1
    times = seen[call.call_id]
    return Observation(
        key=call.call_id if times == 1 else f"{call.call_id}#{times}",
        call_id=call.call_id,
        tool=call.tool,
        arguments=call.arguments,
        text=text,
        is_error=holder.get("is_error") is True,
        is_text=is_text,
        exchange=exchange,
        call=call.position,
        index=index,
        part=part,
    )


def content_text(content: object) -> tuple[str, bool]:
    """The text of a content and whether that is all of it; its JSON where it is not."""
    if content is None:
        return "", True
    if isinstance(content, str):
        return content, True
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
    if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
        return to_json(content), False
    return "\n".join(map(str, texts)), True


def to_json(value: object) -> str:
    """Compact JSON, keys as they stand."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"messages must be plain JSON: {error}") from error
