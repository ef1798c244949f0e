"""Message content as the chat interfaces write it: plain text, or a list of typed blocks.

The block types of OpenAI Chat Completions, OpenAI Responses and Anthropic Messages are disjoint, so one
function reads them all. What it does not know it keeps whole, as a JSON part.
"""

from __future__ import annotations

import base64
import binascii
import re

import msgspec
from msgspec import Struct

from lamina.errors import Invalid
from lamina.importer.records import Json, Part

_MEDIA = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}")
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)


class ToolUse(Struct, frozen=True):
    """A call that the model asked for; `call_id` is empty where the log gives none."""

    call_id: str
    tool: str
    arguments: dict[str, Json]


class ToolResult(Struct, frozen=True):
    """What a call returned; `tool` is empty where the result does not say it."""

    call_id: str
    result: str
    is_error: bool = False
    parts: tuple[Part, ...] = ()
    tool: str = ""


class Content(Struct, frozen=True):
    """One message taken apart: its text, its parts, its calls, its results, its reasoning; each in order."""

    text: str = ""
    parts: tuple[Part, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    results: tuple[ToolResult, ...] = ()
    reasoning: tuple[Part, ...] = ()


def content_of(value: Json) -> Content:
    """Take message content apart. Null is empty; `Invalid` for what is neither text nor blocks."""
    if value is None:
        return Content()
    if isinstance(value, str):
        return Content(text=value)
    blocks = value if isinstance(value, list) else [value]
    texts: list[str] = []
    parts: list[Part] = []
    calls: list[ToolUse] = []
    results: list[ToolResult] = []
    reasoning: list[Part] = []
    for block in blocks:
        if isinstance(block, str):
            texts.append(block)
            continue
        if not isinstance(block, dict):
            raise Invalid("content must be text or a list of blocks")
        match block:
            case {"type": "text" | "input_text" | "output_text" | "summary_text", "text": str(text)}:
                texts.append(text)
            case {"type": "refusal", "refusal": str(text)}:
                texts.append(text)
            case {"type": "thinking", "thinking": str(text)} | {"type": "reasoning_text", "text": str(text)}:
                reasoning.append(thought(text))
            case {"type": "redacted_thinking"}:
                reasoning.append(unknown(block))
            case {"type": "tool_use" | "server_tool_use" | "mcp_tool_use", "name": str(name)}:
                calls.append(ToolUse(_id(block.get("id")), name, arguments_of(block.get("input"))))
            case {"type": str(kind), "tool_use_id": str(call_id)} if kind.endswith("tool_result"):
                results.append(result_of(call_id, block.get("content"), is_error=block.get("is_error") is True))
            case _:
                parts.append(media(block))
    return Content("\n".join(texts), tuple(parts), tuple(calls), tuple(results), tuple(reasoning))


def result_of(call_id: str, value: Json, *, is_error: bool = False, tool: str = "") -> ToolResult:
    """The result of a call whose content is text, blocks, or any other JSON (kept as JSON text)."""
    if isinstance(value, list) and all(isinstance(block, str | dict) for block in value):
        inner = content_of(value)
        return ToolResult(call_id, inner.text, is_error, inner.parts + inner.reasoning, tool)
    text = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    return ToolResult(call_id, text, is_error, (), tool)


def arguments_of(value: Json) -> dict[str, Json]:
    """Arguments as an object: an object as it is, JSON text decoded, anything else under `input`."""
    if isinstance(value, str):
        try:
            decoded: Json = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            decoded = None  # free text is a legal argument of custom tools: it stays text below
        if isinstance(decoded, dict):
            return decoded
    if isinstance(value, dict):
        return value
    return {} if value is None or value == "" else {"input": value}


def thought(text: str) -> Part:
    """Reasoning of a model, as a part."""
    return Part("text/plain; charset=utf-8", text.encode(), "reasoning")


def unknown(block: Json, name: str = "") -> Part:
    """A piece of unknown kind, whole, as canonical JSON."""
    return Part("application/json", msgspec.json.encode(block, order="deterministic"), name)


def media(block: dict[str, Json]) -> Part:
    """The bytes of an image, sound or file block; a link as `text/uri-list`; else the block itself."""
    match block:
        case {"source": {"type": "base64", "data": str(data), **source}}:
            found = _decoded(data, source.get("media_type"), block.get("title"))
        case {"source": {"type": "text", "data": str(data)}}:
            found = Part("text/plain; charset=utf-8", data.encode(), _id(block.get("title")))
        case (
            {"source": {"type": "url", "url": str(url)}} | {"image_url": {"url": str(url)}} | {"image_url": str(url)}
        ):
            found = _linked(url)
        case {"input_audio": {"data": str(data), **sound}}:
            form = sound.get("format")
            found = _decoded(data, f"audio/{form}", None)
        case {"file": {"file_data": str(data), **file}} | {"file_data": str(data), **file}:
            found = _linked(data, _id(file.get("filename")))
        case _:
            found = None
    return found if found is not None else unknown(block, _id(block.get("type")))


def _linked(url: str, name: str = "") -> Part | None:
    inline = _DATA_URL.match(url)
    if inline is not None:
        return _decoded(url[inline.end() :], inline.group(1), name)
    return Part("text/uri-list", url.encode(), name)


def _decoded(data: str, media_type: object, name: object) -> Part | None:
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    known = isinstance(media_type, str) and _MEDIA.fullmatch(media_type)
    return Part(str(media_type) if known else "application/octet-stream", raw, _id(name))


def _id(value: object) -> str:
    return value if isinstance(value, str) else ""
