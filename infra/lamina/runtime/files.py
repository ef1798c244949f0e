"""The files of one space as the fold loop writes them: ledger, rendered files, blobs."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.errors import Busy, Conflict, Invalid
from lamina.runtime import edits
from lamina.runtime.spec import Append, DropFile, WriteFile
from lamina.store.driver import Damaged
from lamina.store.files import AppendFile, translated_os, write_atomic

EPOCH_FILE = "log/epoch"
FORGETTING_FILE = ".forgetting"
"""Stands in a space from before it is read for what is to be forgotten until all of that is gone."""
LOCK_S = 2.0
LOOK_S = 0.01


def ledger_epoch(root: Path) -> str | None:
    """The epoch of a space's ledger: None where there is no ledger, empty where an unmarked one holds lines."""
    path = root / EPOCH_FILE
    with translated_os(path):
        if path.exists():
            return path.read_text(encoding="utf-8", errors="replace").strip()  # a damaged one is of no log
        lines = any(file.stat().st_size for file in (root / "log").glob("*.jsonl"))
    return "" if lines else None


@contextmanager
def ledger_lock(folder: Path, patience_s: float | None = None) -> Iterator[None]:
    """One writer of the ledger in `folder` at a time, or `Busy`. The view's lock is not enough: while a view is
    rebuilt beside the old one, two processes may write the same ledger under two different databases."""
    with translated_os(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    wait_s = LOCK_S if patience_s is None else patience_s
    try:
        until = time.monotonic() + wait_s
        while not _flocked(handle):
            if time.monotonic() > until:
                raise Busy(f"{folder}: another process has been writing the ledger for {wait_s:.0f} s")
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(handle)


class _Seq(Struct):
    seq: int


class SpaceFiles:
    """Effects on the files of `root`; used under the view's lock only, closed by its owner.

    The ledger belongs to one epoch of the log, which `log/epoch` names: the seqs of another mean nothing in it.
    """

    def __init__(self, root: Path, epoch: str) -> None:
        self.root = root
        self._epoch = epoch
        self._open: AppendFile | None = None
        self._tail_seq = 0

    def apply(self, changes: Sequence[Append | WriteFile | DropFile], *, held: int = 0) -> None:
        """Write them durably, in order. A ledger line whose seq stands there already is not written again:
        whoever wrote it died, or was overtaken, between the file and the commit.

        `Damaged` when the ledger ends before line `held`, which the view knows to have been written.
        """
        lines = [change for change in changes if isinstance(change, Append)]
        last = {change.path: change for change in changes if not isinstance(change, Append)}
        for change in last.values():  # of what a batch does to one file only the end is ever seen
            self._place(change)
        if lines:
            with ledger_lock(self.root / "log"):
                self._append(lines, held)

    def _place(self, change: WriteFile | DropFile) -> None:
        self._inside(change.path)
        if isinstance(change, WriteFile):
            edits.place(self.root, change.path, change.data)
        else:
            edits.drop(self.root, change.path)

    def ledger_seq(self) -> int:
        """The seq of the last whole line of the ledger, after cutting a torn one; 0 for none."""
        if self._open is None or self._open.changed() or self._newest() != self._open.path:
            self._mend()
        return self._tail_seq

    def check_ledger(self, held: int) -> None:
        """`Damaged` when lines up to `held` were in the ledger once and are no more."""
        if held and self.ledger_seq() < held:
            raise Damaged(f"the ledger of {self.root.name} lost lines up to {held}; it is made whole from the log")

    def _append(self, lines: Sequence[Append], held: int) -> None:
        self._check_epoch()
        self.check_ledger(held)
        tail = self.ledger_seq()
        wanted = [line for line in lines if line.seq > tail]
        start = 0
        for i, line in enumerate(wanted):
            last = i + 1 == len(wanted)
            if last or wanted[i + 1].file != line.file:
                file = self._file(line.file)
                file.append(b"".join(x.line for x in wanted[start : i + 1]))
                self._tail_seq = line.seq
                start = i + 1

    def _check_epoch(self) -> None:
        """`Conflict` when the ledger is of another epoch; an unmarked empty one is marked."""
        if self._open is not None:
            return
        known = ledger_epoch(self.root)
        if known is None:
            write_atomic(self.root / EPOCH_FILE, self._epoch.encode())
        elif known != self._epoch:
            raise Conflict(
                f"the ledger of {self.root.name} is of epoch {known!r}, the log of {self._epoch!r}: "
                "restart the daemon, which publishes the ledger into the log again"
            )

    def _file(self, name: str) -> AppendFile:
        path = self._inside(f"log/{name}")
        if self._open is None or self._open.path != path:
            if self._open is not None:
                self._open.close()
            self._open = AppendFile(path)
            self._open.mend()
        return self._open

    def _mend(self) -> None:
        self.close()
        self._tail_seq = 0
        with translated_os(self.root):
            names = sorted((p.name for p in (self.root / "log").glob("*.jsonl")), reverse=True)
        for name in names:  # the newest file may be empty after a crash between its making and its first line
            line = self._file(name).mend()
            if line:
                self._tail_seq = line_seq(line, self._inside(f"log/{name}"))
                return

    def _newest(self) -> Path | None:
        return max((self.root / "log").glob("*.jsonl"), default=None)

    def _inside(self, path: str) -> Path:
        full = self.root / path
        if ".." in full.parts or not full.is_relative_to(self.root):
            raise Invalid(f"{path!r} leads out of the space")
        return full

    def blob_path(self, sha256: str) -> Path:
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise Invalid(f"{sha256[:80]!r} is not a SHA-256")
        return self.root / "blobs" / sha256

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _flocked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def line_seq(line: bytes, path: Path) -> int:
    """The seq of a ledger line; `Invalid` when it is not one (the file was changed by hand)."""
    try:
        return msgspec.json.decode(line, type=_Seq).seq
    except msgspec.MsgspecError as error:
        raise Invalid(f"{path}: the last line is no ledger line ({error}); restore the file from a copy") from error
