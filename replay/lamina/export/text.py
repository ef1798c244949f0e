"""A space as text: its events line by line, or its conversations for people to read."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

from lamina import events
from lamina.bus import Bus
from lamina.errors import Invalid
from lamina.events import Blob, MemoryStated, Text, ToolReturned, TurnRecorded
from lamina.export.source import Said, said
from lamina.store.files import translated_os

_FENCE = re.compile(r"`{3,}")


async def jsonl(bus: Bus, root: Path) -> AsyncIterator[str]:
    """Every event as it stands in the log, one a line; what is no event is left out."""
    async for one in said(bus, root):
        if one.event is not None:
            yield one.message.data.decode() + "\n"


async def markdown(bus: Bus, root: Path, space: str) -> AsyncIterator[str]:
    """What was said, in order, under headings of its sessions."""
    yield f"# {_heading(space)}\n"
    session: str | None = None
    async for one in said(bus, root):
        text = _shown(one, root)
        if text and one.event is not None:
            if one.event.session != session:
                session = one.event.session
                yield f"\n## {_heading(session) or 'outside any session'}\n"
            yield text


async def write(parts: AsyncIterator[str], target: Path) -> tuple[int, int]:
    """Write a text to a file: how many parts, and the size of the whole. `Denied` or `DiskFull` as the disk says."""
    with translated_os(target):
        file = await asyncio.to_thread(target.open, "w", encoding="utf-8")
        with file:
            count = 0
            async for part in parts:
                file.write(part)
                count += 1
            file.flush()
            return count, os.fstat(file.fileno()).st_size


def _shown(one: Said, root: Path) -> str:
    event = one.event
    try:
        data = events.decode_data(event) if event is not None else None
    except Invalid:
        return ""
    if event is None or not isinstance(data, TurnRecorded | ToolReturned | MemoryStated):
        return ""
    if isinstance(data, ToolReturned):
        call = events.canonical(data.arguments).decode()
        return f"\n**{_heading(data.tool)}** · {event.time}\n\n{_fenced(call)}\n{_fenced(_text(data.result, root))}"
    who = (data.name or data.role) if isinstance(data, TurnRecorded) else "remembered"
    return f"\n**{_heading(who)}** · {event.time}\n\n{_text(data.text, root)}\n"


def _heading(text: str) -> str:
    """A name on one line."""
    return " ".join(text.split())


def _fenced(text: str) -> str:
    """A text in a fence that it cannot close."""
    fence = "`" * max(3, 1 + max((len(run) for run in _FENCE.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}\n"


def _text(text: Text, root: Path) -> str:
    if isinstance(text, Blob):
        path = root / "blobs" / text.sha256
        return path.read_bytes().decode("utf-8", "replace") if path.exists() else f"({text.size_bytes} bytes, erased)"
    return text
