"""What goes over the wire besides payloads: header blocks, and errors as answers to a request."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lamina import errors
from lamina.errors import Invalid, LaminaError, TooLarge, Unavailable

MSG_ID = "Nats-Msg-Id"
BATCH_ID = "Nats-Batch-Id"
BATCH_SEQUENCE = "Nats-Batch-Sequence"
BATCH_COMMIT = "Nats-Batch-Commit"
ERROR = "Lamina-Error"
MAX_BATCH = 1000
"""Messages in an atomic batch, at most: a limit of the server."""
MAX_PAYLOAD = 1024 * 1024
"""The default of the server, for headers and payload together."""

_PROLOGUE = b"NATS/1.0\r\n"
_KEY = re.compile(r"[!-9;-~]+")


def text(subject: bytes) -> str:
    """A subject as text. The server takes any bytes for one; those that are no UTF-8 become U+FFFD, which no name of
    ours has."""
    return subject.decode("utf-8", "replace")


def encode_headers(headers: Mapping[str, str] | None, message_id: str | None = None) -> bytes:
    """The header block of a message, empty where it has none.

    `Invalid` for what would not come back as it went in: a line break, a control character, a lone
    surrogate, white space at an end of a value, a colon in a name.
    """
    if not headers and message_id is None:
        return b""
    lines = [] if message_id is None else [_line(MSG_ID, message_id)]
    lines += [_line(key, value) for key, value in (headers or {}).items()]
    return _PROLOGUE + "".join(lines).encode() + b"\r\n"


def decode_headers(block: bytes) -> dict[str, str] | None:
    """The headers of a block, without those of an atomic batch; None where none are left."""
    found: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\r\n")[1:]:
        if not line.startswith("Nats-Batch-"):
            key, colon, value = line.partition(":")
            if colon:
                found[key] = value.strip()
    return found or None


def check_size(subject: str, headers: bytes, data: bytes, limit: int) -> None:
    """`TooLarge` when headers and payload together exceed what the server takes."""
    size = len(headers) + len(data)
    if size > limit:
        raise TooLarge(f"{size} bytes with the headers on {subject[:200]}; the bus takes at most {limit} bytes")


def error_reply(error: LaminaError) -> dict[str, str]:
    """The header that tells a requester which error its request met; the message is the payload."""
    return {ERROR: type(error).__name__}


def error_of(name: str, message: str) -> LaminaError:
    """The error that a header and payload of an answer stand for; of an unknown name, `Unavailable`."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, LaminaError):
        return kind(message)
    return Unavailable(f"the answer is an error of an unknown kind, {name[:80]!r}: {message}")


def _line(key: str, value: str) -> str:
    if not _KEY.fullmatch(key):
        raise Invalid(f"{key[:80]!r} is no header name: printable ASCII without a colon")
    if not value.isprintable() or value != value.strip():
        raise Invalid(f"the value of header {key} is not printable text, or begins or ends with white space")
    return f"{key}: {value}\r\n"
