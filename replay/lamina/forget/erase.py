"""Erasing in the log, in ledgers and in outboxes. Everything here may be done twice, and stopped anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from lamina.bus import Bus, Message
from lamina.bus import blobs as bus_blobs
from lamina.client.outbox import Waiting
from lamina.errors import Invalid
from lamina.forget.plan import Plan, Told
from lamina.home import Home, Lock, alive
from lamina.ids import SUBJECT_ROOT, lane
from lamina.runtime import reading
from lamina.runtime.files import ledger_lock
from lamina.runtime.history import ledger_line
from lamina.runtime.spec import Recorded, dead_id
from lamina.store.files import sync_folder, translated_os

AT_ONCE = 8
LEDGERS = ("log", "log.old", "log.damaged-*")
PATIENCE_S = 30.0


class _Named(Struct):
    id: str = ""


_named = msgspec.json.Decoder(_Named)


async def in_log(bus: Bus, root: Path, plan: Plan, told: Told) -> tuple[int, int]:
    """Overwrite the blobs and messages of a plan in the log; how many blobs and messages those were.

    Blobs go first: as long as their event is there, whoever goes on after an interruption finds them.
    """
    blobs = 0
    for done, sha256 in enumerate(sorted(plan.blobs)):
        told("erasing blobs", done, len(plan.blobs))
        there = await bus_blobs.erase(bus, root.name, sha256)
        path = root / "blobs" / sha256
        blobs += bool(there) or path.exists()
        with translated_os(path):
            path.unlink(missing_ok=True)
    erased = 0
    for start in range(0, len(plan.seqs), AT_ONCE):
        told("erasing in the log", start, len(plan.seqs))
        part = plan.seqs[start : start + AT_ONCE]
        erased += sum(await asyncio.gather(*(bus.erase(seq) for seq in part)))
    return blobs, erased


def in_ledgers(root: Path, gone: set[str]) -> int:
    """Take the lines of what is forgotten out of every ledger of a space; how many those were. A file takes its new
    content in one step, under the lock of whoever appends to it."""
    lines = 0
    for pattern in LEDGERS:
        for folder in sorted(root.glob(pattern)):
            with ledger_lock(folder, PATIENCE_S):
                for path in sorted(folder.glob("*.jsonl")):
                    lines += _rewritten(path, lambda raw: _line_id(raw) in gone)
    return lines


def in_outboxes(home: Home, space: str, gone: set[str]) -> tuple[int, list[str]]:
    """The same in the outboxes of clients that are gone, and in what outboxes have set aside; then what could not be
    looked at, since its client lives."""
    lines, unseen = 0, []
    with translated_os(home.outbox):
        files = sorted((*home.outbox.glob("*.jsonl"), *home.outbox.glob("*.rejected")))
    for path in files:
        lock = Lock(home.outbox / f"{path.stem}.lock")
        if not lock.take():
            unseen.append(f"outbox/{path.name}, which process {lock.holder()} owns")
            continue
        try:
            before = set(_blobs_of(path))
            lines += _rewritten(path, lambda raw: _waits(raw, space, gone))
            for sha256 in before - set(_blobs_of(path)):
                (home.outbox / f"{path.stem}.blobs" / sha256).unlink(missing_ok=True)
        finally:
            lock.release()
    return lines, unseen


def waiting(home: Home, space: str) -> list[Recorded]:
    """The events of a space that wait in outboxes of clients that are gone: the next client would publish them."""
    found = []
    for path in sorted(home.outbox.glob("*.jsonl")):
        lock = Lock(home.outbox / f"{path.stem}.lock")
        if not lock.take():
            continue
        try:
            with translated_os(path), path.open("rb") as file:
                found += [one for raw in file if (one := _event_of(raw, space)) is not None]
        finally:
            lock.release()
    return found


def _event_of(raw: bytes, space: str) -> Recorded | None:
    try:
        one = msgspec.json.decode(raw, type=Waiting)
    except msgspec.MsgspecError:
        return None
    read = reading.read(Message(0, one.subject, bytes(one.event), time.time_ns() // 1000), space).recorded
    return read if read.event is not None and one.subject.startswith(_of_space(space)) else None


def left_overs(home: Home, root: Path) -> int:
    """Remove what an interrupted work left in a space: temporary files of processes that are gone, a ledger that was
    being mended; how many files."""
    files = 0
    mended = root / ".mend"
    if mended.exists():
        files += sum(path.is_file() for path in mended.rglob("*"))
        shutil.rmtree(mended, ignore_errors=True)
    for folder in (root, home.outbox):
        for path in folder.rglob(".*.tmp"):
            pid = path.name.rsplit(".", 2)[-2].partition("-")[0]
            if not (pid.isdigit() and alive(int(pid))):
                path.unlink(missing_ok=True)
                files += 1
    return files


def _rewritten(path: Path, drops: Callable[[bytes], bool]) -> int:
    """Put a file without the lines that `drops` names in the place of `path`; how many lines went."""
    with translated_os(path), path.open("rb") as file:
        dropped = sum(map(drops, file))
        if not dropped:
            return 0
        file.seek(0)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-0.tmp")
        try:
            with temporary.open("wb") as made:
                os.fchmod(made.fileno(), os.fstat(file.fileno()).st_mode & 0o777)
                made.writelines(line for line in file if not drops(line))
                made.flush()
                os.fsync(made.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
    return dropped


def _line_id(raw: bytes) -> str:
    """What the message in a ledger line is called; nothing for a damaged line, which may hold anything."""
    try:
        line = ledger_line(raw)
        if line.malformed is not None:
            return dead_id("", line.raw)
        return _named.decode(line.event).id
    except (Invalid, msgspec.MsgspecError):
        return ""


def _waits(raw: bytes, space: str, gone: set[str]) -> bool:
    """Is this line of an outbox, or of what it set aside, an event of the space that is forgotten?"""
    with contextlib.suppress(msgspec.MsgspecError):
        waiting = msgspec.json.decode(raw, type=Waiting)
        return waiting.id in gone and waiting.subject.startswith(_of_space(space))
    with contextlib.suppress(msgspec.MsgspecError):
        return _named.decode(msgspec.json.decode(raw, type=_SetAside).event).id in gone
    return False


def _of_space(space: str) -> str:
    return f"{SUBJECT_ROOT}.ev.{lane(space)}.{space}."


class _SetAside(Struct):
    event: Raw


def _blobs_of(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for raw in file:
            with contextlib.suppress(msgspec.MsgspecError):
                yield from msgspec.json.decode(raw, type=Waiting).blobs
