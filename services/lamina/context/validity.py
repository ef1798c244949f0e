"""What the two providers refuse, written down on its own: `fit` is checked against it, not built from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.context.shapes import Provider


def validate(messages: Sequence[Mapping[str, Any]], provider: Provider | str) -> list[str]:
    """What the provider would refuse in this list, each with its index; empty when it would take it."""
    provider = Provider(provider)
    problems = _common(messages)
    if provider in (Provider.OPENAI, Provider.PLAIN):
        problems += _openai(messages)
    if provider in (Provider.ANTHROPIC, Provider.PLAIN):
        problems += _anthropic(messages)
    return problems


def _common(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    if not messages:
        return ["0: the list is empty"]
    return [f"{i}: content is an empty list" for i, message in enumerate(messages) if message.get("content") == []]


def _openai(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = []
    waiting: set[str] = set()
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                problems.append(f"{i}: result of no call right before it")
            waiting.discard(message.get("tool_call_id", ""))
            continue
        if waiting:
            problems.append(f"{i}: calls {sorted(waiting)} are not answered")
        calls = message.get("tool_calls") or []
        waiting = {call["id"] for call in calls}
        if message.get("content") is None and not calls and not message.get("function_call"):
            problems.append(f"{i}: neither content nor calls")
        if not all(isinstance(call["function"]["arguments"], str) for call in calls if "function" in call):
            problems.append(f"{i}: arguments are not a string")
    return [*problems, f"{len(messages)}: calls {sorted(waiting)} are not answered"] if waiting else problems


def _anthropic(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    problems = []
    first = next((i for i, message in enumerate(messages) if message["role"] != "system"), 0)
    if messages[first]["role"] != "user":
        problems.append(f"{first}: the first message is not the user's")
    waiting: set[str] = set()
    used: set[str] = set()
    for i in range(first, len(messages)):
        message = messages[i]
        if message["role"] not in ("user", "assistant"):
            problems.append(f"{i}: role {message['role']}")
        if i > first and message["role"] == messages[i - 1]["role"]:
            problems.append(f"{i}: the role does not alternate")
        parts = message["content"] if isinstance(message.get("content"), list) else []
        problems += [f"{i}: {reason}" for reason in _empty(message.get("content"))]
        results = [part["tool_use_id"] for part in parts if part.get("type") == "tool_result"]
        if set(results) != waiting or len(results) != len(set(results)):
            problems.append(f"{i}: results {results} for calls {sorted(waiting)}")
        if any(part.get("type") != "tool_result" for part in parts[: len(results)]):
            problems.append(f"{i}: results do not come first")
        calls = [part["id"] for part in parts if part.get("type") == "tool_use"]
        problems += [f"{i}: call id {call} is used twice" for call in calls if call in used]
        used.update(calls)
        waiting = set(calls)
    return [*problems, f"{len(messages)}: calls {sorted(waiting)} are not answered"] if waiting else problems


def _empty(content: object) -> list[str]:
    if isinstance(content, str):
        return [] if content.strip() else ["empty content"]
    if not isinstance(content, list):
        return ["no content"]
    texts = [part.get("text") for part in content if part.get("type") == "text"]
    return ["empty text"] if not all(isinstance(text, str) and text.strip() for text in texts) else []
