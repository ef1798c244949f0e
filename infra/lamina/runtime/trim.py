"""Letting events go from the log that the ledger is verified to hold, so that the log keeps a bounded tail.

Of a space everything up to a seq goes, never its last event: whoever asks the log for a space finds it. Before
anything is removed it was read and compared, byte for byte, with the ledger and the blobs on disk, every service of
the node has folded it, and `log/trimmed` says so. From then on `history` reads those events from the ledger.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from lamina import events
from lamina.bus import Bus, Message
from lamina.config import Keep
from lamina.errors import Busy, Invalid, LaminaError
from lamina.home import Home, Lock
from lamina.ids import SUBJECT_ROOT, blob_subject, lane, untoken
from lamina.log import get_logger
from lamina.runtime.files import ledger_epoch
from lamina.runtime.history import (
    FETCH_S,
    arrival_us,
    ledger_lines,
    ledger_messages,
    mark_trimmed,
    space_subject,
    trimmed,
)
from lamina.runtime.index import Index
from lamina.runtime.refill import named

BATCH = 1_000
STORED_BYTES = 30
"""What the log adds to a message, about."""
EVERY_S = 60.0
log = get_logger()


class Trimmed(Struct, frozen=True, kw_only=True):
    """What became of one space: `seq` is up to where the ledger alone holds its events, `removed` how many messages
    went from the log just now. `why` says what kept the rest, where more could have gone."""

    space: str
    seq: int
    removed: int
    why: str = ""


async def cut_at(bus: Bus, keep: Keep, *, now_us: int | None = None) -> int:
    """The seq up to which everything may go, if the ledger holds it; 0 for nothing."""
    info = await bus.info()
    excess = info.size_bytes - keep.size_bytes if keep.size_bytes else 1 << 62
    limit_us = (now_us or time.time_ns() // 1000) - keep.seconds * 1_000_000 if keep.seconds else 1 << 62
    if excess <= 0 or not info.messages:
        return 0
    cut = 0
    reader = bus.read([f"{SUBJECT_ROOT}.ev.>", f"{SUBJECT_ROOT}.blob.>"], after=0, name="trim")
    try:
        while messages := await reader.fetch(BATCH, FETCH_S):
            for message in messages:
                excess -= len(message.data) + len(message.subject) + STORED_BYTES
                if message.at_us >= limit_us:
                    return cut
                cut = message.seq
                if excess <= 0:
                    return cut
            if not reader.pending:
                return cut
    finally:
        await reader.close()
    return cut


async def trim(home: Home, bus: Bus, spaces: Sequence[str], services: Sequence[str], cut: int) -> list[Trimmed]:
    """Let the events of the spaces (tokens) up to seq `cut` go from the log, as far as the ledger is verified to
    hold them and all of `services` (names) have folded them. Interrupted, the next one goes on.

    `Busy` while another process trims.
    """
    lock = Lock(home.run / "trim.lock")
    if not lock.take():
        raise Busy(f"process {lock.holder()} is trimming the log")
    try:
        there = [space for space in spaces if cut > 0 and (home.spaces / space / "log").is_dir()]
        return [await _space(home, bus, space, services, cut) for space in there]
    finally:
        lock.release()


async def keeping(home: Home, bus: Bus, keep: Keep, services: Sequence[str]) -> None:
    """Trim once a minute until cancelled; what cannot be trimmed now is said, and tried again."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            cut = await cut_at(bus, keep)
            spaces = sorted(path.name for path in home.spaces.iterdir() if (path / "log").is_dir()) if cut else []
            for one in await trim(home, bus, spaces, services, cut):
                if one.why:
                    log.warning("not_trimmed", space=one.space, why=one.why)
        except (LaminaError, OSError) as error:
            log.warning("trim_failed", error=f"{type(error).__name__}: {error}")


async def _space(home: Home, bus: Bus, space: str, services: Sequence[str], cut: int) -> Trimmed:
    root = home.spaces / space
    before = trimmed(root, bus.epoch)
    last = await bus.last(space_subject(space))
    folded, slowest = await _folded(home, bus.epoch, space, services)
    why = f"{slowest} has folded up to {folded} only" if folded < cut else ""
    end = min(cut, folded, last.seq - 1 if last is not None else 0)
    if ledger_epoch(root) != bus.epoch:
        return Trimmed(space=untoken(space), seq=before, removed=0, why="its ledger is of another epoch of the log")
    held, blobs, fault = await _verified(bus, root, after=before, until=end)
    removed = 0
    if held > before:
        mark_trimmed(root, bus.epoch, held)
    if held:  # also what an interrupted one left
        removed = await bus.purge(space_subject(space), below=held + 1)
        for sha256 in blobs:
            removed += await bus.purge(blob_subject(space, sha256), below=1 << 62)
    return Trimmed(space=untoken(space), seq=max(held, before), removed=removed, why=fault or why)


async def _folded(home: Home, epoch: str, space: str, services: Sequence[str]) -> tuple[int, str]:
    """How far all services have come with the lane of the space, durably; and which has come least."""
    slowest = (1 << 62, "")
    for name in services:
        index = Index(home.run / f"{name}.db")
        await index.open()
        try:
            slowest = min(slowest, (await index.position(epoch, [lane(space)]), name))
        finally:
            await index.close()
    return slowest


async def _verified(bus: Bus, root: Path, *, after: int, until: int) -> tuple[int, set[str], str]:
    """Up to which seq the ledger and the blobs hold what the log holds, which blobs those are, and what is not."""
    held, blobs = after, set[str]()
    first = await bus.next(space_subject(root.name), after)
    if first is None or first.seq > until:
        return max(until, after), blobs, ""
    lines = _Lines(root, after, until)
    reader = bus.read([space_subject(root.name)], after=after, name="trim")
    try:
        while held < until:
            messages = [one for one in await reader.fetch(BATCH, FETCH_S) if one.seq <= until]
            fault = await asyncio.to_thread(_check, root, messages, lines, blobs) if messages else None
            if fault is not None:
                return fault.seq - 1, blobs, f"event {fault.seq} is not in the ledger as it is in the log: verify it"
            if not messages or not reader.pending:
                break
            held = messages[-1].seq
    finally:
        await reader.close()
    return max(until, after), blobs, ""


def _check(root: Path, messages: Sequence[Message], lines: _Lines, blobs: set[str]) -> Message | None:
    """The first message that the ledger or the blobs do not hold as the log does."""
    for message in messages:
        line = lines.at(message.seq)
        if line is None:
            if not _repeats(root, message):
                return message
        elif line.data != message.data or line.at_us != arrival_us(message):
            return message
        for blob in _blobs(message.data):
            if blob.sha256 not in blobs and not _whole(root / "blobs" / blob.sha256, blob):
                return message
            blobs.add(blob.sha256)
    return None


def _repeats(root: Path, message: Message) -> bool:
    """Does the ledger hold an earlier event that said the same under the same id? Then this one has no line."""
    name = named(message.data)[0]
    lines = ledger_lines(root / "log", [])
    return any(line.seq < message.seq and named(line.raw)[0] == name for line in lines)


class _Lines:
    """The ledger's lines in order."""

    def __init__(self, root: Path, after: int, until: int) -> None:
        self._lines: Iterator[Message] = ledger_messages(root, after=after, until=until + 1, damaged=[])
        self._next: Message | None = next(self._lines, None)

    def at(self, seq: int) -> Message | None:
        """The line of `seq`, once everything before it was passed over."""
        while self._next is not None and self._next.seq <= seq:
            line, self._next = self._next, next(self._lines, None)
            if line.seq == seq:
                return line
        return None


def _blobs(raw: bytes) -> tuple[events.Blob, ...]:
    try:
        data = events.decode_data(events.decode(raw))
    except Invalid:
        return ()
    return events.blobs_of(data) if data is not None else ()


def _whole(path: Path, blob: events.Blob) -> bool:
    if not path.is_file() or path.stat().st_size != blob.size_bytes:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == blob.sha256
