"""Messages of chat interfaces (OpenAI Chat Completions and Responses, Anthropic Messages), one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from lamina.errors import Invalid
from lamina.importer import values
from lamina.importer.blocks import Content, ToolResult, ToolUse, arguments_of, content_of, result_of, thought, unknown
from lamina.importer.conversation import Conversation
from lamina.importer.formats.base import guarded
from lamina.importer.records import Item, Json, Source

_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "mcp_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output"}


def read_all(
    conversation: Conversation, messages: Json, name: str, source: Source, time: datetime | None = None
) -> Iterator[Item]:
    """Every message of a list; `name` and the position make the ids of those that have none."""
    for n, value in enumerate(values.objects(messages, "the list of messages")):
        where = source.at(f"[{n}]")
        yield from guarded(where, read_one, conversation, value, f"{name}:{n}", where, time)


def read_one(
    conversation: Conversation, value: Json, fallback_id: str, source: Source, time: datetime | None = None
) -> Iterator[Item]:
    """One message or one item of a Responses list. `Invalid` for anything else."""
    message = values.mapping(value, "a message")
    kind = message.get("type")
    when = _time(message) or time
    if isinstance(kind, str) and "role" not in message:
        yield from conversation.message(
            "assistant", item_content(message, kind), turn_id=fallback_id, source=source, time=when
        )
        return
    if "role" not in message:
        raise Invalid("a message needs a role")
    role = values.role(message["role"])
    if role == "tool":
        content = Content(results=(_tool_message(message),))
    else:
        content = _with_calls(message, content_of(message.get("content")))
    yield from conversation.message(
        role,
        content,
        turn_id=values.ident(message.get("id")) or fallback_id,
        source=source,
        time=when,
        name=values.optional_text(message.get("name"), "name"),
    )


def item_content(item: dict[str, Json], kind: str) -> Content:
    """An item of a Responses list that is no message: a call, its output, reasoning, or something unknown."""
    call_id = values.ident(item.get("call_id")) or values.ident(item.get("id"))
    if kind in _CALLS:
        given = next((item[key] for key in ("arguments", "input", "action") if key in item), None)
        use = ToolUse(call_id, _tool_name(item, kind), arguments_of(given))
        if kind == "mcp_call" and item.get("output") is not None:
            return Content(calls=(use,), results=(result_of(call_id, item["output"]),))
        return Content(calls=(use,))
    if kind in _OUTPUTS:
        return Content(results=(_output(call_id, item.get("output", item.get("tools"))),))
    if kind == "reasoning":
        texts = (content_of(item.get(key)) for key in ("summary", "content"))
        return Content(
            reasoning=tuple(part for c in texts for part in (*([thought(c.text)] if c.text else ()), *c.reasoning))
        )
    return Content(parts=(unknown(item, kind),))


def conversation_id(document: dict[str, Json]) -> str:
    """The id that a conversation gives itself; empty where it gives none."""
    for key in ("conversation_id", "session_id", "session", "thread_id", "id", "uuid"):
        found = values.ident(document.get(key))
        if found:
            return found
    return ""


def _time(message: dict[str, Json]) -> datetime | None:
    for key in ("time", "timestamp", "created_at", "create_time", "created"):
        if message.get(key) is not None:
            return values.when(message[key])
    return None


def _tool_name(item: dict[str, Json], kind: str) -> str:
    name = item.get("name")
    return name if isinstance(name, str) and name else kind.removesuffix("_call")


def _output(call_id: str, output: Json) -> ToolResult:
    match output:
        case {"content": content, "success": bool(success)}:
            return result_of(call_id, content, is_error=not success)
    return result_of(call_id, output)


def _tool_message(message: dict[str, Json]) -> ToolResult:
    name = values.optional_text(message.get("name"), "name") or ""
    call_id = values.ident(message.get("tool_call_id"))
    return result_of(call_id, message.get("content"), is_error=message.get("is_error") is True, tool=name)


def _use(function: Json, call_id: str) -> ToolUse:
    given = values.mapping(function, "the function of a tool call")
    arguments = next((given[key] for key in ("arguments", "input", "args") if key in given), None)
    return ToolUse(call_id, values.text(given.get("name"), "the name of a tool"), arguments_of(arguments))


def _with_calls(message: dict[str, Json], content: Content) -> Content:
    calls: list[ToolUse] = []
    for value in values.objects(message.get("tool_calls") or [], "tool_calls"):
        call = values.mapping(value, "a tool call")
        calls.append(_use(call.get("function") or call.get("custom") or call, values.ident(call.get("id"))))
    if message.get("function_call") is not None:
        calls.append(_use(message["function_call"], ""))
    reasoning = message.get("reasoning_content")
    refusal = message.get("refusal")
    parts = content.parts + ((unknown(message["audio"], "audio"),) if message.get("audio") is not None else ())
    return Content(
        text=content.text or (refusal if isinstance(refusal, str) else ""),
        parts=parts,
        calls=content.calls + tuple(calls),
        results=content.results,
        reasoning=content.reasoning + ((thought(reasoning),) if isinstance(reasoning, str) and reasoning else ()),
    )
