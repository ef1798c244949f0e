"""From what a caller gave to the stub it gets back: text through `lamina.digest`, other bytes named as such."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lamina import digest
from lamina.client.inputs import Content

IN_LOOP_CHARS = 32 * 1024
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
        return digest.binary_stub(node, tool, arguments, content.text.media_type, content.text.size_bytes)
    if len(text) <= IN_LOOP_CHARS:
        return digest.stub(node, tool, arguments, text, is_error=is_error)
    return await asyncio.to_thread(digest.stub, node, tool, arguments, text, is_error=is_error)
