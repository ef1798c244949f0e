"""Files beside a view: the fsynced append, the atomic replacement, and the ledger's mending.

Everything here runs inside a view's transaction, under its lock, so one process at a time touches a space's
files. Files are written before the commit: after a crash a file may be ahead of its view, never behind it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from lamina.errors import Denied, DiskFull, LaminaError, Permanent


@contextmanager
def translated_os(path: Path) -> Iterator[None]:
    """Turn operating system errors about `path` into `lamina.errors`, keeping the cause."""
    try:
        yield
    except OSError as error:
        kind: type[LaminaError] = Permanent
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            kind = DiskFull
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            kind = Denied
        raise kind(f"{path}: {error.strerror}") from error


_WRITES = count()  # two services of one process may write the same blob at once


def write_atomic(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """`path` holds `data` after this, or what it held before: temporary file, fsync, rename, fsync of the folder.
    `mode` is that of the file, less the process's umask."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{next(_WRITES)}.tmp")
    with translated_os(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class AppendFile:
    """A file of whole lines that is only ever appended to.

    `size` is the length after the last whole line known to this process; when the file is longer, somebody else
    (a worker that held the lock before us and died, or went on) appended, and the caller looks at the tail.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = -1
        with translated_os(path):
            made = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if made:
                sync_folder(path.parent)

    def changed(self) -> bool:
        """Did anybody else touch the file since our last append, or put another one in its place?"""
        own = os.fstat(self._handle)
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return True
        return own.st_size != self.size or (own.st_dev, own.st_ino) != (found.st_dev, found.st_ino)

    def mend(self) -> bytes:
        """Cut a torn last line and return the last whole one (without its newline; empty for an empty file)."""
        with translated_os(self.path):
            end = os.fstat(self._handle).st_size
            tail = _tail(self._handle, end)
            whole = tail.rfind(b"\n") + 1
            self.size = end - len(tail) + whole
            if self.size != end:
                os.ftruncate(self._handle, self.size)
                os.fsync(self._handle)
            return tail[: whole - 1].rsplit(b"\n", 1)[-1] if whole else b""

    def append(self, data: bytes) -> None:
        """Append `data` (whole lines) and fsync; on failure the file is as long as before."""
        with translated_os(self.path):
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._handle, view) :]
                os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, self.size)
                raise
        self.size += len(data)

    def close(self) -> None:
        os.close(self._handle)


def _tail(handle: int, end: int) -> bytes:
    """The end of the file from the newline before the last whole line on (all of it when there is none)."""
    step = 1 << 16
    start = end
    tail = b""
    while start > 0:
        begin = max(0, start - step)
        tail = os.pread(handle, start - begin, begin) + tail
        start = begin
        whole = tail.rfind(b"\n")
        if whole > 0 and tail.rfind(b"\n", 0, whole) >= 0:
            break
        step *= 4
    return tail
