"""From what a caller gave to the stub it gets back: text through `lamina.digest`, other bytes named as such."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lamina import digest, events
from lamina.client.inputs import Content
from lamina.errors import Invalid
from lamina.events import Blob, Event, ToolReturned
from lamina.records import Part

IN_LOOP_CHARS = 16 * 1024
"""Longer results are digested in a thread, so that the event loop is never held for long."""


async def stub_text(
    node: str, tool: str, arguments: Mapping[str, Any], given: str | bytes, content: Content, *, is_error: bool
) -> str:
    """The stub's text: the result itself where it is short."""
    if isinstance(content.text, str):
        text = content.text
    elif content.text.media_type.startswith("text/"):
        text = given if isinstance(given, str) else bytes(given).decode()
    else:
        blob = content.text
        return digest.binary_stub(node, tool, arguments, size_bytes=blob.size_bytes, media_type=blob.media_type)
    if len(text) <= IN_LOOP_CHARS:
        return digest.stub(node, tool, arguments, text, is_error=is_error)
    return await asyncio.to_thread(digest.stub, node, tool, arguments, text, is_error=is_error)


def waiting_part(
    node: str,
    waiting: tuple[Event, Mapping[str, bytes]],
    *,
    query: str | None,
    lines: str | None,
    symbol: str | None,
    max_tokens: int,
) -> Part:
    """A piece of a result that is still in the outbox."""
    event, blobs = waiting
    data = events.decode_data(event)
    if not isinstance(data, ToolReturned):
        raise Invalid(f"{node} is no tool result")
    text = blobs[data.result.sha256].decode("utf-8", "replace") if isinstance(data.result, Blob) else data.result
    passage = digest.read(text, query=query, lines=lines, symbol=symbol, max_tokens=max_tokens)
    return Part(
        node=node,
        text=passage.text,
        lines=passage.ranges,
        total_lines=passage.total_lines,
        omitted=passage.omitted,
    )
