"""The outbox: what a client accepted while the log was away, fsynced, in order, published when it is back.

`outbox/<pid>-<start>.jsonl` belongs to one client, which holds the lock beside it for life; the kernel gives the
lock back when the client dies, and then any other client may adopt the file. Publishing an event twice is one
event, so a crash in the middle of emptying costs a repeat and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from lamina.errors import Conflict, Invalid, OutboxFull, Permanent
from lamina.home import Lock
from lamina.log import get_logger
from lamina.store.files import AppendFile, translated_os, write_atomic

log = get_logger()


class Waiting(Struct, frozen=True):
    """An event that waits: where it goes, its bytes, the SHA-256 of the blobs that go before it."""

    subject: str
    id: str
    event: Raw
    blobs: tuple[str, ...] = ()


Publish = Callable[[Waiting, "Outbox"], Awaitable[None]]


class Outbox:
    """One client's outbox. Files appear with the first event that must wait."""

    def __init__(self, folder: Path, *, max_bytes: int, name: str | None = None) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self.name = name or f"{os.getpid()}-{time.time_ns() // 1000}"
        self._lock = Lock(folder / f"{self.name}.lock")
        self._file: AppendFile | None = None
        self._next = 0  # where emptying goes on
        self.rejected = 0

    @property
    def path(self) -> Path:
        return self._folder / f"{self.name}.jsonl"

    @property
    def empty(self) -> bool:
        return self._file is None or self._file.size <= self._next

    def put(self, waiting: Waiting, blobs: Sequence[tuple[str, bytes]]) -> None:
        """Keep an event durably. `OutboxFull` at the limit, `DiskFull` without room; then nothing is kept."""
        line = msgspec.json.encode(waiting) + b"\n"
        used = self._size() + len(line) + sum(len(data) for _, data in blobs)
        if used > self._max_bytes:
            raise OutboxFull(
                f"the outbox holds {self._size()} of at most {self._max_bytes} bytes and the log is away: "
                "bring the bus back (`lamina status`) or raise outbox.max_bytes"
            )
        for sha256, data in blobs:
            if not self.blob(sha256).exists():
                write_atomic(self.blob(sha256), data)
        self.open().append(line)

    def blob(self, sha256: str) -> Path:
        return self._folder / f"{self.name}.blobs" / sha256

    def open(self) -> AppendFile:
        """Take the lock and the file; `Conflict` when another client holds it."""
        if self._file is None:
            if not self._lock.take():
                raise Conflict(f"{self.path}: process {self._lock.holder()} owns this outbox")
            self._file = AppendFile(self.path)
            self._file.mend()
        return self._file

    async def drain(self, publish: Publish) -> int:
        """Publish what waits, in order; what the log refuses for good is set aside beside the outbox.

        Returns how many were published. A `Transient` or `Full` error ends it; what is left goes on waiting.
        """
        done = 0
        while not self.empty:
            for waiting, end in self._waiting():
                try:
                    await publish(waiting, self)
                    done += 1
                except (Permanent, Conflict) as error:
                    self._reject(waiting.event, str(error), waiting.id)
                self._next = end
            self._forget_published()
        return done

    def waiting(self) -> Iterator[Waiting]:
        """What waits, oldest first."""
        return (waiting for waiting, _ in self._waiting())

    def _waiting(self) -> Iterator[tuple[Waiting, int]]:
        """What waits, and where each ends; a line that cannot be read is set aside."""
        end = self._next
        with translated_os(self.path), self.path.open("rb") as file:
            file.seek(self._next)
            for line in file:
                end += len(line)
                try:
                    waiting = msgspec.json.decode(line, type=Waiting)
                except msgspec.MsgspecError as error:
                    self._reject(msgspec.json.encode(line), f"not readable: {error}")
                    self._next = end
                    continue
                yield waiting, end

    def read_blob(self, sha256: str) -> bytes:
        """The bytes of a blob that waits; `Invalid` when they are not what they were."""
        try:
            data = self.blob(sha256).read_bytes()
        except FileNotFoundError:
            data = b""
        if hashlib.sha256(data).hexdigest() != sha256:
            raise Invalid(
                f"the blob {sha256} is damaged or gone from the outbox: the event that names it is set aside"
            )
        return data

    def _forget_published(self) -> None:
        """Cut the file to nothing if nothing came in meanwhile."""
        file = self._file
        if file is not None and file.size <= self._next:
            with translated_os(self.path):
                os.truncate(self.path, 0)
            file.mend()
            self._next = 0
            shutil.rmtree(self._folder / f"{self.name}.blobs", ignore_errors=True)

    def _reject(self, event: Raw | bytes, why: str, id: str = "") -> None:
        """Set aside what can never be published, where a person finds it with the reason."""
        self.rejected += 1
        log.warning("outbox_rejected", id=id, error=why)
        kept = AppendFile(self._folder / f"{self.name}.rejected")
        try:
            kept.mend()
            kept.append(msgspec.json.encode({"why": why, "event": Raw(event)}) + b"\n")
        finally:
            kept.close()

    def _size(self) -> int:
        size = self._file.size if self._file is not None else 0
        folder = self._folder / f"{self.name}.blobs"
        return size + (sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0)

    def close(self) -> None:
        """Give it up; an empty one leaves no files, a full one waits for whoever adopts it."""
        if self._file is None:
            return
        empty = self.empty
        self._file.close()
        self._file = None
        if empty:
            self.path.unlink(missing_ok=True)
            shutil.rmtree(self._folder / f"{self.name}.blobs", ignore_errors=True)
            self._lock.path.unlink(missing_ok=True)
        self._lock.release()


def orphans(folder: Path, max_bytes: int) -> Iterator[Outbox]:
    """The outboxes of clients that are gone, each taken over by this one; the caller drains and closes them."""
    for path in sorted(folder.glob("*.jsonl")):
        outbox = Outbox(folder, max_bytes=max_bytes, name=path.stem)
        try:
            outbox.open()
        except Conflict:
            continue
        except Permanent as error:  # another user's, most likely: it must not keep us from the others
            log.warning("outbox_not_adopted", outbox=path.name, error=str(error))
            continue
        yield outbox
