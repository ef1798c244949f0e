"""The ledger made whole: what of it can be read and what the log still holds, brought together in order.

The journal itself writes the new one, into a folder of its own, from both sources; then the files take their places
one by one under the ledger's lock, and whoever was writing sees that and goes on behind them.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lamina.bus import Bus, Message
from lamina.errors import Busy, Conflict, Invalid
from lamina.home import Home
from lamina.ids import untoken
from lamina.rebuild.progress import Mended
from lamina.runtime.files import EPOCH_FILE, ledger_epoch
from lamina.runtime.history import (
    FETCH_S,
    arrival_us,
    ledger_count,
    ledger_files,
    ledger_messages,
    mark_trimmed,
    space_subject,
    trimmed,
)
from lamina.runtime.open_view import OpenView
from lamina.runtime.refill import of_this_log
from lamina.runtime.registry import fold_services
from lamina.store.driver import connect
from lamina.store.files import sync_folder, write_atomic
from lamina.store.view import View

FOLDER = ".mend"
BATCH = 2_000
LOCK_S = 30.0
JOURNAL = "journal"


async def mend(bus: Bus, home: Home, space: str) -> Mended:
    """Make the ledger of a space (a token) whole again, from its own lines and from the log.

    What neither holds is gone for good: `lamina replay verify` names it. What the ledger alone holds is read from it
    from now on. Interrupted, nothing has changed or some files have; the same call does the rest.

    `Conflict` for the ledger of another log: its positions mean nothing here, and starting the daemon takes it in.
    """
    start = time.monotonic()
    root = home.spaces / space
    folder = root / FOLDER
    if ledger_epoch(root) not in (None, bus.epoch) and not await of_this_log(bus, root):
        raise Conflict(f"the ledger of {untoken(space)!r} is of another epoch of the log: restart the daemon first")
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    (folder / space / "log").mkdir(parents=True)
    (folder / space / "blobs").symlink_to(root / "blobs", target_is_directory=True)
    (root / "blobs").mkdir(exist_ok=True)
    try:
        async with _writer(bus, folder / space) as writer:
            sources = await asyncio.to_thread(_Sources, folder / "sources.db")
            try:
                damaged = await _gathered(bus, root, sources)
                for messages in sources.batches():
                    await writer.fold(messages)
                alone = await asyncio.to_thread(sources.alone)
            finally:
                sources.close()
            async with _locked(root / "log"):
                end = await writer.cursor()
                late = list(ledger_messages(root, after=end.seq, until=(await bus.info()).last_seq + 1))
                if late:  # what the live journal wrote meanwhile
                    await writer.fold(late)
                await _mark(bus, root, alone)
                kept = await asyncio.to_thread(_keep, root) if damaged else ""
                files = await asyncio.to_thread(_place, folder / space / "log", root / "log")
        lines = await asyncio.to_thread(ledger_count, root / "log")
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return Mended(
        space=untoken(space),
        lines=lines,
        files=files,
        unreadable=len(damaged),
        kept=kept,
        seconds=round(time.monotonic() - start, 3),
    )


class _Sources:
    """Messages by position, from anywhere and in any order; what comes last for a position counts."""

    def __init__(self, path: Path) -> None:
        self._db: sqlite3.Connection = connect(path, readonly=False)
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute(
            "CREATE TABLE messages(seq INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, data BLOB NOT NULL, "
            "logged INTEGER NOT NULL)"
        )

    def add(self, messages: Sequence[Message], *, logged: bool) -> None:
        rows = [(one.seq, arrival_us(one), one.data, logged) for one in messages]
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR REPLACE INTO messages VALUES(?, ?, ?, ?)", rows)
        self._db.execute("COMMIT")

    def batches(self) -> Iterator[list[Message]]:
        rows = self._db.execute("SELECT seq, at_us, data FROM messages ORDER BY seq")
        while found := [Message(seq, "", data, at_us) for seq, at_us, data in islice(rows, BATCH)]:
            yield found

    def alone(self) -> int:
        """The position of the last event that the ledger alone holds; 0 where there is none."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM messages WHERE NOT logged").fetchone()[0])

    def close(self) -> None:
        self._db.close()


async def _gathered(bus: Bus, root: Path, sources: _Sources) -> list[str]:
    """Take in the ledger's readable lines, then the log, whose bytes count; where lines could not be read."""
    damaged: list[str] = []
    end = (await bus.info()).last_seq
    lines = ledger_messages(root, after=0, until=end + 1, damaged=damaged)
    while messages := await asyncio.to_thread(lambda: list(islice(lines, BATCH))):
        sources.add(messages, logged=False)
    subject = space_subject(root.name)
    if await bus.next(subject, 0) is not None:
        reader = bus.read([subject], after=0, name="mend")
        try:
            while messages := await reader.fetch(BATCH, FETCH_S):
                sources.add(messages, logged=True)
                if not reader.pending:
                    break
        finally:
            await reader.close()
    return damaged


async def _mark(bus: Bus, root: Path, alone: int) -> None:
    """Where the log begins later than it did, and the mark that says so is damaged or lost, write it anew; and let
    everything up to `alone`, which the log lost, be read from the ledger."""
    first = await bus.next(space_subject(root.name), 0)
    try:
        known = trimmed(root, bus.epoch)
    except Invalid:
        known = -1
    begins = first.seq - 1 if first is not None else (await bus.info()).last_seq
    older = next(ledger_messages(root, after=0, until=begins + 1), None)
    if known < alone or (known == 0 and older is not None):
        mark_trimmed(root, bus.epoch, max(alone, begins if older is not None else 0))


@contextlib.asynccontextmanager
async def _writer(bus: Bus, root: Path) -> AsyncIterator[OpenView[Any]]:
    """A journal that writes into `root`."""
    service = fold_services()[JOURNAL]
    view = View(root / "views" / f"{JOURNAL}.db", service.tables, n=1)
    opened = OpenView(service, bus, root.name, root, view)
    await view.open()
    try:
        yield opened
    finally:
        await opened.close()


@contextlib.asynccontextmanager
async def _locked(folder: Path) -> AsyncIterator[None]:
    """Nobody else writes to the ledger for the length of the block."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > until:
                    raise Busy(f"{folder}: another process has been writing the ledger for {LOCK_S:.0f} s") from error
                await asyncio.sleep(0.01)
        yield
    finally:
        os.close(handle)


def _keep(root: Path) -> str:
    """A copy of the ledger as it was, for whoever may repair what could not be read."""
    kept = root / f"log.damaged-{time.time_ns() // 1000}"
    shutil.copytree(root / "log", kept)
    return kept.name


def _place(made: Path, log: Path) -> int:
    """Let the files of the new ledger take the places of the old ones; how many changed."""
    changed = 0
    new = {path.name: path for path in ledger_files(made)}
    for name, path in new.items():
        target = log / name
        data = path.read_bytes()
        if not target.exists() or target.read_bytes() != data:
            write_atomic(target, data)
            changed += 1
    for path in ledger_files(log):
        if path.name not in new:
            path.unlink()
            changed += 1
    epoch = log / Path(EPOCH_FILE).name
    mine = (made / epoch.name).read_bytes()
    if not epoch.exists() or epoch.read_bytes() != mine:
        write_atomic(epoch, mine)
    sync_folder(log)
    return changed
