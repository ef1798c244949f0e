"""The mark under a rendered file that people may edit: its own checksum. Pure.

A file whose seal fits was written here and by nobody else since, whichever version of it this is; the seal of one
that was edited still tells which version the person had before them.
"""

from __future__ import annotations

import hashlib
import re

_SEAL = re.compile(rb"\n<!-- lamina ([0-9a-f]{16}) -->\s{0,8}\Z")
_SEAL_BYTES = 64


def sealed(body: str) -> bytes:
    """`body` with its seal below it, as the file is written. Lone surrogates become question marks."""
    raw = body.encode("utf-8", "replace")
    return raw + f"\n<!-- lamina {_checksum(raw)} -->\n".encode()


def seal_of(data: bytes) -> str:
    """The seal that stands under a file, whether it fits or not; empty where there is none."""
    found = _SEAL.search(data, max(0, len(data) - _SEAL_BYTES))
    return found.group(1).decode() if found else ""


def unsealed(data: bytes) -> bytes:
    """A file without its seal."""
    found = _SEAL.search(data, max(0, len(data) - _SEAL_BYTES))
    return data[: found.start()] if found else data


def intact(data: bytes) -> bool:
    """Was the file written by `sealed`, and not changed since?"""
    seal = seal_of(data)
    return seal != "" and _checksum(unsealed(data)) == seal


def _checksum(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:16]
