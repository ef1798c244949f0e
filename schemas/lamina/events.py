"""The event model: what stands in the log, how it is encoded, and how it is read back.

An event is an envelope whose `data` is kept as the bytes that were received. `sha256` is taken over those
bytes, so a checksum never depends on who decoded and encoded again. Stored bytes are never rewritten:
old versions are lifted to today's shape by `lamina.upcast` at the decoding edge.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from lamina import upcast
from lamina.data import (
    CHUNK_BYTES,
    MAX_BLOB_BYTES,
    MAX_INLINE_BYTES,
    ROLES,
    TYPES,
    AtomsExtracted,
    AtomsReconciled,
    Blob,
    ContextCut,
    CutMade,
    Data,
    DeadDropped,
    DeadRetried,
    FileEdited,
    MemoryCorrected,
    MemoryForgotten,
    MemoryRederived,
    MemoryStated,
    MemoryUndone,
    PersonaEdited,
    PersonaRevised,
    RecallAsked,
    ScenarioEdited,
    ScenariosArranged,
    SessionEnded,
    StepFailed,
    Text,
    ToolReturned,
    TurnRecorded,
)
from lamina.errors import Invalid, TooLarge
from lamina.ids import token
from lamina.times import parse, text_of

__all__ = [
    "CHUNK_BYTES",
    "MAX_BLOB_BYTES",
    "MAX_DEPTH",
    "MAX_INLINE_BYTES",
    "ROLES",
    "TYPES",
    "AtomsExtracted",
    "AtomsReconciled",
    "Blob",
    "ContextCut",
    "CutMade",
    "Data",
    "DeadDropped",
    "DeadRetried",
    "Decision",
    "Event",
    "FileEdited",
    "MemoryCorrected",
    "MemoryForgotten",
    "MemoryRederived",
    "MemoryStated",
    "MemoryUndone",
    "PersonaEdited",
    "PersonaRevised",
    "RecallAsked",
    "ScenarioEdited",
    "ScenariosArranged",
    "SessionEnded",
    "StepFailed",
    "Text",
    "ToolReturned",
    "TurnRecorded",
    "blobs_of",
    "canonical",
    "decode",
    "decode_data",
    "encode",
    "make",
    "make_raw",
    "read_decision",
    "type_of",
]

MAX_DEPTH = 64
_NAMES = {kind: name for name, kind in TYPES.items()}


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event as it stands in the log. `data` is the JSON as received; `decode_data` gives its struct."""

    id: str
    type: str
    v: int
    space: str
    time: str
    sha256: str
    data: Raw
    session: str = ""
    agent: str = ""
    project: str = ""
    cause: tuple[str, ...] = ()

    @property
    def when(self) -> datetime:
        """When it happened, with the offset it was given."""
        return parse(self.time)


class Decision(Struct, frozen=True):
    """What every decision's data begins with: its step and its number within the space."""

    step: str
    n: int
    inputs: tuple[str, ...] = ()


_PLAIN = (str, int)
_encoder = msgspec.json.Encoder(order="deterministic")
_event_encoder = msgspec.json.Encoder()
_event_decoder = msgspec.json.Decoder(Event)
_decoders: dict[str, msgspec.json.Decoder[Any]] = {name: msgspec.json.Decoder(kind) for name, kind in TYPES.items()}


def canonical(value: object) -> bytes:
    """The one JSON form of `value`: compact UTF-8, struct fields in order, mapping keys sorted.

    `Invalid` for what JSON cannot hold faithfully: NaN and infinities (msgspec would write null), lone
    surrogates, keys that are not text, anything but structs and JSON's own types, nesting deeper than 64.
    """
    _check(value, 0)
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, msgspec.MsgspecError) as error:
        raise Invalid(f"this cannot be written as JSON: {error}") from error


def type_of(data: Struct) -> str:
    """The event type whose data this is; `Invalid` for any other object."""
    name = _NAMES.get(type(data))
    if name is None:
        raise Invalid(f"{type(data).__name__} is no event type")
    return name


def make(
    data: Struct,
    *,
    id: str,
    space: str,
    time: datetime,
    session: str = "",
    agent: str = "",
    project: str = "",
    cause: tuple[str, ...] = (),
) -> Event:
    """The event of `data`. Raises `Invalid` or `TooLarge`; nothing that it returns fails to decode."""
    return make_raw(
        type_of(data),
        canonical(data),
        id=id,
        space=space,
        time=time,
        session=session,
        agent=agent,
        project=project,
        cause=cause,
    )


def make_raw(
    type: str,
    data: bytes,
    *,
    id: str,
    space: str,
    time: datetime,
    session: str = "",
    agent: str = "",
    project: str = "",
    cause: tuple[str, ...] = (),
) -> Event:
    """The event of already canonical `data` bytes of any type, known here or not."""
    if len(data) > 2 * MAX_INLINE_BYTES:
        raise TooLarge(f"event data of {len(data)} bytes; at most {2 * MAX_INLINE_BYTES} stand in an event")
    for label, value in (("space", space), ("session", session), ("agent", agent), ("project", project)):
        if not isinstance(value, str):
            raise Invalid(f"{label} must be text, not {value.__class__.__name__}")
        try:
            token(value)
        except TooLarge as error:
            raise TooLarge(f"{label}: {error}") from error
        except Invalid as error:
            raise Invalid(f"{label}: {error}") from error
    return Event(
        id=id,
        type=type,
        v=upcast.VERSIONS.get(type, 1),
        space=space,
        time=text_of(time),
        sha256=hashlib.sha256(data).hexdigest(),
        data=Raw(data),
        session=session,
        agent=agent,
        project=project,
        cause=cause,
    )


def encode(event: Event) -> bytes:
    """The bytes that are published: one line of JSON around the `data` bytes as they are."""
    try:
        return _event_encoder.encode(event)
    except UnicodeEncodeError as error:
        raise Invalid("an event holds a lone surrogate; text must be valid Unicode") from error


def decode(raw: bytes) -> Event:
    """Read an envelope of any type, known or not, and check `data` against its checksum.

    `Invalid` names what is wrong; the caller keeps the bytes (a poison event is parked, never dropped).
    """
    try:
        str(raw, "utf-8")  # the decoder does not look inside of `data` and of fields it does not know
        event = _event_decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"not an event: {error}") from error
    if hashlib.sha256(event.data).hexdigest() != event.sha256:
        raise Invalid(f"event {event.id}: the checksum does not fit the data; it was changed on its way")
    return event


def decode_data(event: Event) -> Data | None:
    """The data as today's struct, lifted through every version since it was written; None for a type
    that this version does not know. `Invalid` when the bytes do not have the shape their type promises."""
    decoder = _decoders.get(event.type)
    if decoder is None:
        return None
    try:
        if event.v != upcast.VERSIONS.get(event.type, 1):
            lifted = upcast.lift(event.type, event.v, msgspec.json.decode(event.data))
            data: Data = msgspec.convert(lifted, decoder.type)
        else:
            data = decoder.decode(event.data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"event {event.id}: its data is no {event.type}: {error}") from error
    return data


def read_decision(event: Event) -> Decision | None:
    """Step and number of a decision event of any type, known or not; None for a source event."""
    try:
        return msgspec.json.decode(event.data, type=Decision)
    except msgspec.MsgspecError:
        return None


def _check(value: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Invalid(f"nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, _PLAIN):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Invalid("NaN and infinities have no JSON form; give null or text")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise Invalid(f"a key must be text, not {type(key).__name__}")
            _check(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, depth + 1)
    elif isinstance(value, Struct):
        for field in value.__struct_fields__:
            item = getattr(value, field)
            if item is not None and not isinstance(item, _PLAIN):
                _check(item, depth + 1)
    else:  # msgspec would write bytes, dates and dataclasses as something else, and not the same thing back
        raise Invalid(f"{type(value).__name__} has no JSON form of its own; give text, numbers, lists and mappings")


def blobs_of(data: Data) -> tuple[Blob, ...]:
    """The blobs that an event's data names."""
    found: list[Blob] = []
    for field in data.__struct_fields__:
        value = getattr(data, field)
        if isinstance(value, Blob):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(part for part in value if isinstance(part, Blob))
    return tuple(found)
