"""What a caller gives, checked and made into event data; a long text or bytes become a blob beside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from lamina import times
from lamina.errors import Invalid, TooLarge
from lamina.events import MAX_BLOB_BYTES, MAX_INLINE_BYTES, ROLES, Blob, Text
from lamina.records import AsOf
from lamina.requests import MAX_QUERY_CHARS
from lamina.text import injected

MAX_NAME_CHARS = 1_000
MAX_WAIT_S = 86_400
MAX_SEQ_DIGITS = 19
_CLOCK = re.compile(r"\d[Tt ]\d\d:")
BINARY = "application/octet-stream"


class Content(Struct, frozen=True):
    """A text as it stands in the event, and the blob that must be published before it, if any."""

    text: Text
    blobs: tuple[tuple[Blob, bytes], ...] = ()


def content(value: str | bytes, what: str, *, empty: bool = False) -> Content:
    """`value` as event content. Bytes that are UTF-8 are text; other bytes are a blob.

    `Invalid`: no text at all (unless `empty`), or a lone surrogate. `TooLarge`: above 64 MiB.
    """
    if isinstance(value, str):
        try:
            raw = value.encode()
        except UnicodeEncodeError as error:
            raise Invalid(f"{what} holds a lone surrogate; decode the bytes with errors='replace' first") from error
    elif isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
    else:
        raise Invalid(f"{what} must be text or bytes, not {type(value).__name__}")
    if len(raw) > MAX_BLOB_BYTES:
        raise TooLarge(f"{what} has {len(raw)} bytes; at most {MAX_BLOB_BYTES} are taken: split it")
    text = _decoded(raw) if not isinstance(value, str) else value
    if not empty and (not raw or (text is not None and not text.strip())):
        raise Invalid(f"{what} is empty: there is nothing to remember")
    if text is not None and _json_bytes(text, len(raw)) <= MAX_INLINE_BYTES:
        return Content(text)
    media = BINARY if text is None else Blob("", 0).media_type
    blob = Blob(hashlib.sha256(raw).hexdigest(), len(raw), media)
    return Content(blob, ((blob, raw),))


def _json_bytes(text: str, size: int) -> int:
    """What `text` of `size` bytes takes in JSON, where a control character is six bytes and a quote two."""
    if size > MAX_INLINE_BYTES or size * 6 <= MAX_INLINE_BYTES:  # too much, or never too much
        return size
    return len(msgspec.json.encode(text)) - 2


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def said(value: str | bytes) -> Content:
    """What somebody said as event content, without the blocks that memory put there.

    Raises what `content` raises; `Invalid` too where nothing else was said.
    """
    if isinstance(value, bytes | bytearray | memoryview) and len(value) <= MAX_BLOB_BYTES:
        decoded = _decoded(bytes(value))
        value = bytes(value) if decoded is None else decoded
    return content(injected.cut(value) if isinstance(value, str) else value, "text")


def role(value: str) -> str:
    """One of the four roles; `Invalid` names them."""
    if value not in ROLES:
        raise Invalid(f"unknown role {value!r}; there are: {', '.join(ROLES)}. Who spoke goes into name=")
    return value


def session_id(value: str) -> str:
    """A session's name: any text but the empty one."""
    if not isinstance(value, str) or not value:
        raise Invalid("a session is needed: any name that stays the same over one conversation")
    return value


def name(value: str | None, what: str) -> str | None:
    """A short text or None."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{what} must be a text that is not empty")
    if len(value) > MAX_NAME_CHARS:
        raise TooLarge(f"{what} has {len(value)} characters; at most {MAX_NAME_CHARS} are taken")
    return value


def arguments(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a tool call: a JSON object."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"arguments must be a mapping, not {type(value).__name__}")
    return dict(value)


def seconds(value: float, what: str) -> float:
    """A span of time that can be waited for."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_WAIT_S:
        raise Invalid(f"{what} must be 0 to {MAX_WAIT_S} seconds, not {value!r}")
    return float(value)


def whole(value: int, what: str) -> int:
    """A whole number; which of them have a meaning is for who answers to say."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{what} must be a whole number, not {type(value).__name__}")
    return value


def names(value: Collection[str] | None, what: str) -> tuple[str, ...] | None:
    """Some names, or None for all. One text alone is `Invalid`: its letters would be taken for names."""
    if value is None:
        return None
    if isinstance(value, str | bytes):
        raise Invalid(f"{what} must be a list of names: [{value[:40]!a}], not {value[:40]!a}")
    if not isinstance(value, Collection) or not all(isinstance(one, str) for one in value):
        raise Invalid(f"{what} must be a list of names, not {type(value).__name__}")
    return tuple(value)


def query(text: str) -> str:
    """A query that can travel: any text, its lone surrogates replaced, its length bounded."""
    if not isinstance(text, str):
        raise Invalid(f"the query must be text, not {type(text).__name__}")
    return text[:MAX_QUERY_CHARS].encode("utf-8", "replace").decode()


def as_of(value: AsOf | int | datetime | str | None) -> AsOf | None:
    """A moment of memory: a position of the log (`17`, or `"<epoch>:17"`), or a time.

    `Invalid` for what is neither, and for a time without an offset.
    """
    if value is None or isinstance(value, AsOf):
        return value
    if isinstance(value, str):
        epoch, _, seq = value.rpartition(":")
        if seq.isdecimal() and seq.isascii() and len(seq) < MAX_SEQ_DIGITS and not _CLOCK.search(value):
            return AsOf(seq=int(seq), epoch=epoch)
    if isinstance(value, int) and not isinstance(value, bool):
        return AsOf(seq=value)
    if isinstance(value, str | datetime):
        return AsOf(time=times.aware(value))
    raise Invalid(f"as_of must be a position of the log or a time, not {type(value).__name__}")
