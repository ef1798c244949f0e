"""Names and identifiers: one encoding for subjects and files, one way to make every id.

Ids never hash text: the same id with other text is a conflict to be seen, not a new event.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import unicodedata
import uuid
from collections.abc import Sequence
from functools import lru_cache

from lamina.errors import Invalid, TooLarge

LANES = 256
MAX_TOKEN_BYTES = 120
CACHED = 16_384  # spaces and sessions in use: every message names one
SUBJECT_ROOT = "lamina"

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
_HEX = frozenset("0123456789abcdef")
_MAX_COUNTER = (1 << 18) - 1
_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"


@lru_cache(maxsize=CACHED)
def token(text: str) -> str:
    """Encode any id text as one subject token and file name.

    NFC first; `[a-z0-9-]` stand as they are, every other UTF-8 byte is `_hh`, the empty text is `_`.
    The encoding is injective on NFC text, so two ids never share a subject or a folder, not even on a
    file system that folds case. Raises `Invalid` for lone surrogates and `TooLarge` above 120 bytes.
    """
    if not text:
        return "_"
    if len(text) > MAX_TOKEN_BYTES:
        raise TooLarge(f"an id of {len(text)} characters; at most {MAX_TOKEN_BYTES} encoded bytes are allowed")
    try:
        raw = unicodedata.normalize("NFC", text).encode()
    except UnicodeEncodeError as error:
        raise Invalid("an id must be valid Unicode; this one holds a lone surrogate") from error
    encoded = "".join(chr(b) if b in _PLAIN else f"_{b:02x}" for b in raw)
    if len(encoded) > MAX_TOKEN_BYTES:
        raise TooLarge(f"an id of {len(encoded)} encoded bytes; at most {MAX_TOKEN_BYTES} are allowed")
    return encoded


@lru_cache(maxsize=CACHED)
def untoken(encoded: str) -> str:
    """The text whose `token` is `encoded`; `Invalid` when no text has it."""
    if encoded == "_":
        return ""
    if len(encoded) > MAX_TOKEN_BYTES:
        raise Invalid(f"{encoded[:80]!r}... is not an encoded id: it has {len(encoded)} characters")
    raw = bytearray()
    at = 0
    while at < len(encoded):
        if encoded[at] != "_":
            raw += encoded[at].encode("utf-8", "replace")
            at += 1
            continue
        pair = encoded[at + 1 : at + 3]
        if len(pair) != 2 or not _HEX.issuperset(pair):
            raise Invalid(f"{encoded!r} is not an encoded id")
        raw.append(int(pair, 16))
        at += 3
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{encoded!r} is not an encoded id") from error
    if not text or token(text) != encoded:
        raise Invalid(f"{encoded!r} is not an encoded id")
    return text


@lru_cache(maxsize=CACHED)
def lane(space_token: str) -> int:
    """The lane of a space, 0 to 255: fixed for ever, since it stands in every subject of the space."""
    return hashlib.sha256(space_token.encode()).digest()[0]


def event_subject(space_token: str, event_type: str) -> str:
    """`lamina.ev.<lane>.<space>.<kind>`; the kind is the event type with dashes for dots."""
    return f"{SUBJECT_ROOT}.ev.{lane(space_token)}.{space_token}.{event_type.replace('.', '-')}"


def blob_subject(space_token: str, sha256: str) -> str:
    """`lamina.blob.<lane>.<space>.<sha256>`: the chunks of one blob of one space."""
    return f"{SUBJECT_ROOT}.blob.{lane(space_token)}.{space_token}.{sha256}"


def rpc_subject(space_token: str, verb: str) -> str:
    """`lamina.rpc.<lane>.<space>.<verb>`: where the query service of the space's node answers."""
    return f"{SUBJECT_ROOT}.rpc.{lane(space_token)}.{space_token}.{verb}"


def forget_subject(space_token: str) -> str:
    """`lamina.do.<lane>.<space>.forget`: where the daemon of the space's node takes requests to forget."""
    return f"{SUBJECT_ROOT}.do.{lane(space_token)}.{space_token}.forget"


def applied_subject(space_token: str, service: str) -> str:
    """`lamina.applied.<lane>.<space>.<service>`: says, best effort, that a view has moved on."""
    return f"{SUBJECT_ROOT}.applied.{lane(space_token)}.{space_token}.{service}"


def space_of(subject: str) -> str:
    """The space token of an event, blob, rpc, do or applied subject; `Invalid` for any other subject."""
    parts = subject.split(".")
    if len(parts) < 5 or parts[0] != SUBJECT_ROOT:
        raise Invalid(f"{subject!r} names no space")
    return parts[3]


def derived_id(*parts: str | int) -> str:
    """A UUIDv8 (RFC 9562) that is a function of `parts` alone; parts are kept apart by their lengths."""
    raw = [str(part).encode("utf-8", "surrogatepass") for part in parts]
    framed = b"".join([piece for one in raw for piece in (len(one).to_bytes(8, "big"), one)])
    value = bytearray(hashlib.sha256(framed).digest()[:16])
    value[6] = (value[6] & 0x0F) | 0x80
    value[8] = (value[8] & 0x3F) | 0x80
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def source_id(space: str, session: str, given: str, event_type: str) -> str:
    """The id of a source event to which the caller gave a `turn_id` or `call_id`."""
    nfc = [part if part.isascii() else unicodedata.normalize("NFC", part) for part in (space, session, given)]
    return derived_id("source", *nfc, event_type)


def decision_id(space: str, step: str, n: int, inputs: Sequence[str]) -> str:
    """The id of the `n`-th decision of `step` in `space` over the events `inputs`."""
    return derived_id("decision", unicodedata.normalize("NFC", space), step, n, *inputs)


def atom_id(decision: str, index: int) -> str:
    """The id of the `index`-th atom of the decision event `decision`, or of an event that is one atom (index 0)."""
    return derived_id("atom", decision, index)


def node_id(event_id: str) -> str:
    """The short name of a tool result: `n` and 11 base-32 digits (55 bits) of its event id's hash."""
    return "n" + _short(event_id)


def line_id(place: str) -> str:
    """The short name of the line of the persona for what was said at `place`: `p` and 11 base-32 digits (55 bits)."""
    return "p" + _short(place)


def _short(id: str) -> str:
    value = int.from_bytes(hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:7], "big") >> 1
    return "".join(_BASE32[(value >> shift) & 31] for shift in range(50, -1, -5))


class _Uuid7:
    """UUIDv7 (RFC 9562, method 1): milliseconds, then a counter, so that one process never goes back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ms = 0
        self._counter = 0

    def __call__(self) -> str:
        with self._lock:
            now_ms = time.time_ns() // 1_000_000
            if now_ms > self._last_ms:
                self._last_ms, self._counter = now_ms, int.from_bytes(os.urandom(2), "big") >> 1
            elif self._counter < _MAX_COUNTER:
                self._counter += 1
            else:  # the clock stands still, or goes back: borrow the next millisecond
                self._last_ms, self._counter = self._last_ms + 1, 0
            ms, counter = self._last_ms, self._counter
        tail = int.from_bytes(os.urandom(7), "big")
        value = (ms & ((1 << 48) - 1)) << 80
        value |= 0x7 << 76
        value |= (counter >> 6) << 64
        value |= 0b10 << 62
        value |= (counter & 0x3F) << 56
        return str(uuid.UUID(int=value | tail))


uuid7 = _Uuid7()
"""A fresh id for an event to which the caller gave none; ids of one process sort by creation."""
