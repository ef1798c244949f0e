"""From a record to the event that is published: its id, its time, its bytes, and the blobs that go before it."""

from __future__ import annotations

import hashlib
from datetime import datetime

from msgspec import Struct

from lamina import events, ids
from lamina.client import inputs
from lamina.errors import TooLarge
from lamina.events import MAX_BLOB_BYTES, Blob, Event, SessionEnded, ToolReturned, TurnRecorded
from lamina.importer.records import Call, Part, Record, SessionEnd, Source, Turn


class Prepared(Struct, frozen=True, gc=False):
    """An event ready to be published, the blobs that it names, and the record that it was made of."""

    record: Record
    event: Event
    raw: bytes
    blobs: tuple[tuple[Blob, bytes], ...]

    @property
    def source(self) -> Source:
        return self.record.source

    @property
    def size_bytes(self) -> int:
        """Bytes that publishing sends."""
        return len(self.raw) + sum(len(data) for _, data in self.blobs)


def prepare(record: Record, space: str, unknown_time: datetime) -> Prepared:
    """The event of `record` in `space`; `unknown_time` stands in where the log tells no time.

    The id is a function of space, session, the record's own id and kind alone: reading a log again gives the same
    events. `Invalid` or `TooLarge` for what cannot be an event.
    """
    if isinstance(record, Turn):
        parts = _parts(record.parts)
        text = inputs.content(record.text, "text", empty=True)
        given, blobs = record.turn_id, text.blobs
        data: Struct = TurnRecorded(
            role=inputs.role(record.role),
            text=text.text,
            name=inputs.name(record.name, "name") if record.name and record.name.strip() else None,
            turn_id=inputs.name(given, "turn_id"),
            parts=tuple(blob for blob, _ in parts),
        )
    elif isinstance(record, Call):
        parts = _parts(record.parts)
        result = inputs.content(record.result, "result", empty=True)
        given, blobs = record.call_id, result.blobs
        data = ToolReturned(
            tool=inputs.name(record.tool, "tool") or "unknown",
            arguments=record.arguments,
            result=result.text,
            call_id=inputs.name(given, "call_id"),
            is_error=record.is_error,
            parts=tuple(blob for blob, _ in parts),
        )
    else:
        given, blobs, parts = "", (), ()
        data = SessionEnded()
    event = events.make(
        data,
        id=ids.source_id(space, record.session, given, events.type_of(data)),
        space=space,
        time=record.time or unknown_time,
        session=inputs.session_id(record.session),
        agent=record.agent,
        project=record.project,
    )
    return Prepared(record, event, events.encode(event), blobs + parts)


def label(record: Record) -> str:
    """What a record is called in messages."""
    if isinstance(record, SessionEnd):
        return f"the end of session {record.session}"
    return f"turn {record.turn_id}" if isinstance(record, Turn) else f"call {record.call_id}"


def _parts(parts: tuple[Part, ...]) -> tuple[tuple[Blob, bytes], ...]:
    made = []
    for part in parts:
        if len(part.data) > MAX_BLOB_BYTES:
            raise TooLarge(f"a part of {len(part.data)} bytes; at most {MAX_BLOB_BYTES} are taken")
        digest = hashlib.sha256(part.data).hexdigest()
        made.append((Blob(digest, len(part.data), part.media_type, part.name or None), part.data))
    return tuple(made)
