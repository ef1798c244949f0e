"""The form of `refs/<node>.md`: a small header, then the result byte for byte in a fence it cannot close. Pure."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

MAX_INLINE_BYTES = 64 * 1024
"""A longer result is kept in `blobs/`, and the reference points there."""
_RUNS = re.compile(r"`{3,}")


class Header(Struct, frozen=True, kw_only=True):
    """What stands above a result. Every value is written as JSON, so that no value can pass for a line of its own."""

    node: str
    tool: str
    arguments: str
    session: str
    call_id: str
    time: str
    status: str
    size_bytes: int
    lines: int
    media_type: str
    sha256: str
    event: str


def with_text(header: Header, text: str) -> tuple[bytes, int]:
    """The file with the result in it, and the byte offset at which the result begins."""
    fence = "`" * max(3, 1 + max((len(run) for run in _RUNS.findall(text)), default=0))
    head = f"{_front(header)}\n{fence}text\n".encode()
    return head + text.encode() + f"\n{fence}\n".encode(), len(head)


def with_pointer(header: Header) -> bytes:
    """The file of a result that is kept as a blob."""
    link = f"../blobs/{header.sha256}"
    return f"{_front(header)}\nThe result is kept whole in [{link}]({link}).\n".encode()


def _front(header: Header) -> str:
    lines = [f"{field}: {msgspec.json.encode(getattr(header, field)).decode()}" for field in header.__struct_fields__]
    return "\n".join(("---", *lines, "---", ""))
