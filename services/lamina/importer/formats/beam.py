"""BEAM: one message a line, with `chat`, `id`, `batch`, `role`, `content`, `time_anchor`.

The turn's id is the message's, the session `<chat>/b<batch>`. An anchor (a day, taken as UTC) sets the clock of a
chat where it lies ahead of it; every other message is a minute after the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from lamina.importer import values
from lamina.importer.formats.base import Format
from lamina.importer.formats.locomo import EPOCH
from lamina.importer.reading import Document
from lamina.importer.records import Item, Turn


class BeamReader:
    """Keeps one clock a chat."""

    def __init__(self, stem: str) -> None:
        self._clocks: dict[str, datetime] = {}

    def feed(self, document: Document) -> Iterator[Item]:
        line = values.mapping(document.value, "a message")
        chat = values.ident(line.get("chat"))
        turn = Turn(
            role=values.role(line.get("role")),
            text=values.text(line.get("content"), "content"),
            session=f"{chat}/b{values.ident(line.get('batch'))}",
            turn_id=values.text(values.ident(line.get("id")) or None, "id"),
            source=document.source,
            time=self._tick(chat, values.utc(line.get("time_anchor"), "%B-%d-%Y")),
        )
        yield turn

    def finish(self) -> Iterator[Item]:
        return iter(())

    def _tick(self, chat: str, anchor: datetime | None) -> datetime:
        before = self._clocks.get(chat, EPOCH)
        now = anchor if anchor is not None and anchor > before else before + timedelta(minutes=1)
        self._clocks[chat] = now
        return now


def _recognises(document: Document) -> bool:
    match document.value:
        case {"chat": _, "id": _, "batch": _, "role": _, "content": _}:
            return True
    return False


FORMAT = Format("beam", "BEAM chats", _recognises, BeamReader)
