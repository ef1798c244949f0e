"""Blobs: large data beside the events, in the same log, cut into chunks and addressed by its SHA-256.

All chunks of a blob are one atomic batch: neighbours in the log, all there or none. The last one is erased
first, so that a blob whose erasure was interrupted is never taken for whole.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from lamina import ids
from lamina.bus.port import Bus, Message, Outgoing
from lamina.errors import Denied, Forgotten, Invalid, TooLarge
from lamina.events import CHUNK_BYTES, MAX_BLOB_BYTES, Blob

CHUNK = "Lamina-Chunk"
GETS_AT_ONCE = 16
_THREAD_BYTES = 1024 * 1024  # from here on hashing would hold up the event loop for milliseconds


async def put(
    bus: Bus,
    space_token: str,
    data: bytes | Path,
    *,
    media_type: str = "text/plain; charset=utf-8",
    name: str | None = None,
    timeout_s: float = 30.0,
) -> Blob:
    """Store `data`, or what a file holds, for a space; returns once it is fsynced.

    Nothing is sent when the log holds this blob of this space already. `TooLarge` above 64 MiB, `Denied` when
    the file cannot be read; otherwise as `Bus.publish_batch`. Repeating it after `Timeout` is safe.
    """
    if isinstance(data, Path):
        data = await asyncio.to_thread(_read, data)
    if len(data) > MAX_BLOB_BYTES:
        raise TooLarge(f"{len(data)} bytes; a blob holds at most {MAX_BLOB_BYTES}")
    blob = Blob(await _sha256(data), len(data), media_type, name)
    subject = ids.blob_subject(space_token, blob.sha256)
    total = max(1, -(-len(data) // CHUNK_BYTES))
    found = await bus.last(subject)
    if found is not None and _place(found) == (total, total):
        return blob
    await bus.publish_batch(
        [
            Outgoing(subject, data[n * CHUNK_BYTES : (n + 1) * CHUNK_BYTES], None, {CHUNK: f"{n + 1}/{total}"})
            for n in range(total)
        ],
        timeout_s=timeout_s,
    )
    return blob


async def get(bus: Bus, space_token: str, sha256: str, size_bytes: int, *, timeout_s: float = 5.0) -> bytes:
    """The bytes of a blob, checked against size and SHA-256.

    `Forgotten` when the log does not hold them (any more: erased, or trimmed), `Invalid` when they are not
    what their name says, `Unavailable` and `Timeout` (for each chunk) as `Bus.get`.
    """
    subject = ids.blob_subject(space_token, sha256)
    last = await bus.last(subject, timeout_s=timeout_s)
    if last is None:
        raise Forgotten(f"blob {sha256} is not in the log: it was erased, trimmed, or never stored")
    at, total = _place(last)
    if at != total:
        raise Forgotten(f"blob {sha256} was erased in part")
    gate = asyncio.Semaphore(GETS_AT_ONCE)

    async def chunk(n: int) -> bytes:
        async with gate:
            message = await bus.get(last.seq - total + n, timeout_s=timeout_s)
        if message is None or message.subject != subject or _place(message) != (n, total):
            raise Forgotten(f"blob {sha256} was erased in part: chunk {n} of {total} is missing")
        return message.data

    tasks = [asyncio.create_task(chunk(n)) for n in range(1, total)]
    try:
        data = b"".join([*(await asyncio.gather(*tasks)), last.data])
    finally:
        for task in tasks:
            task.cancel()
    if len(data) != size_bytes or await _sha256(data) != sha256:
        raise Invalid(f"blob {sha256}: {len(data)} bytes that do not fit their checksum or size, {size_bytes}")
    return data


async def erase(bus: Bus, space_token: str, sha256: str, *, timeout_s: float = 5.0) -> int:
    """Overwrite and remove every chunk of a blob, in every copy; returns how many there were."""
    subject = ids.blob_subject(space_token, sha256)
    erased = 0
    while (message := await bus.last(subject, timeout_s=timeout_s)) is not None:
        erased += await bus.erase(message.seq, timeout_s=timeout_s)
    return erased


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BLOB_BYTES + 1)
    except OSError as error:
        raise Denied(f"{path} cannot be read: {error.strerror}") from error


async def _sha256(data: bytes) -> str:
    if len(data) < _THREAD_BYTES:
        return hashlib.sha256(data).hexdigest()
    return await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())


def _place(message: Message) -> tuple[int, int]:
    """Which chunk of how many a message is; `Invalid` for what is no chunk."""
    at, slash, total = (message.headers or {}).get(CHUNK, "").partition("/")
    if not slash or not at.isascii() or not at.isdigit() or not total.isascii() or not total.isdigit():
        raise Invalid(f"message {message.seq} on {message.subject} is no chunk of a blob")
    return int(at), int(total)
