"""The events of a space, in order, as lines: from the ledger where the log was trimmed, else from the log."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from lamina import events
from lamina.bus import Bus, Message
from lamina.errors import Invalid
from lamina.runtime.history import arrival_us, history, space_subject
from lamina.times import from_micros, text_of

BATCH = 1_000


class Said:
    """An event as it came, and its line: `event` is None for what is none."""

    __slots__ = ("event", "message")

    def __init__(self, message: Message) -> None:
        self.message = message
        try:
            self.event: events.Event | None = events.decode(message.data)
        except Invalid:
            self.event = None

    @property
    def line(self) -> bytes:
        """As the ledger writes it."""
        at = text_of(from_micros(arrival_us(self.message))).encode()
        head = b'{"seq":%d,"at":"%s",' % (self.message.seq, at)
        if self.event is None or b"\n" in self.message.data:
            return head + b'"malformed":"' + base64.b64encode(self.message.data) + b'"}\n'
        return head + b'"event":' + self.message.data + b"}\n"

    @property
    def blobs(self) -> tuple[events.Blob, ...]:
        """The blobs that it names."""
        try:
            data = events.decode_data(self.event) if self.event is not None else None
        except Invalid:
            return ()
        return events.blobs_of(data) if data is not None else ()


async def said(bus: Bus, root: Path) -> AsyncIterator[Said]:
    """Everything that is in the log of the space at `root` now."""
    last = await bus.last(space_subject(root.name))
    until = last.seq + 1 if last is not None else 1 << 62
    parts = history(bus, root, after=0, until=until, name="export", batch=BATCH)
    async with contextlib.aclosing(parts):
        async for messages in parts:
            for message in messages:
                yield Said(message)


def human_files(root: Path) -> Iterator[Path]:
    """What a person reads of a space: references, canvases, scenarios, persona, skills."""
    for pattern in ("persona.md", "refs/*.md", "canvas/*.mmd", "scenarios/*.md", "skills/*/SKILL.md"):
        yield from sorted(path for path in root.glob(pattern) if path.is_file() and not path.is_symlink())
