"""When the log lost its store: the ledgers publish what they hold into the new one.

A new stream has a new epoch, and the seqs of a ledger mean nothing in it. So each space's ledger is set aside as
`log.old/`, its events (same bytes, same ids, arrival times in a header) and blobs are published again in atomic
batches, and the journal writes a new ledger from them. `log.old/` goes when the new one holds all of its ids.
Interrupted at any point, the next start goes on: what is there already is not published twice.
"""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

from lamina import events
from lamina.bus import Bus, Outgoing, blobs
from lamina.errors import Invalid
from lamina.home import Home
from lamina.ids import event_subject
from lamina.log import get_logger
from lamina.runtime.files import EPOCH_FILE, ledger_epoch
from lamina.runtime.history import ARRIVED, Line, ledger_lines, space_subject
from lamina.runtime.spec import dead_id
from lamina.store.files import sync_folder, translated_os, write_atomic
from lamina.times import micros, parse

BATCH = 500
TOLD_BY = 20
"""Lines looked at to tell whose a ledger is: some of the newest may be damaged, or not in the log."""
DAMAGED = "log.damaged"
CHOOSE = "move the folder of the space away to keep the log's events, or use another stream to keep the ledger's"
log = get_logger()


async def refill(home: Home, bus: Bus) -> list[str]:
    """Publish every ledger that is not of the log's epoch; the spaces (tokens) whose views must be made again.

    A space of which the log holds events that its ledger does not know is left alone and said: two histories of
    one space are for a person to choose between, and until then its views stand still. Of a damaged ledger the
    lines that can be read are published, and the folder is kept as `log.damaged/`.
    """
    done = []
    for root in sorted(path for path in home.spaces.glob("*") if path.is_dir()):
        aside = root / "log.old"
        if not aside.exists() and ledger_epoch(root) not in (None, bus.epoch) and await of_this_log(bus, root):
            log.warning("ledger_epoch_damaged", space=root.name)
            write_atomic(root / EPOCH_FILE, bus.epoch.encode())
            continue
        if not aside.exists() and ledger_epoch(root) not in (None, bus.epoch):
            strangers = await _there(bus, root.name) - _ids(root / "log")
            if strangers:
                log.error("refill_refused", space=root.name, strangers=len(strangers), remedy=CHOOSE)
                continue
            with translated_os(root):
                (root / "log").rename(aside)
                sync_folder(root)
        if aside.exists():
            log.info("refill", space=root.name, events=await _publish(bus, root.name, aside, root / "blobs"))
            done.append(root.name)
    return done


async def of_this_log(bus: Bus, root: Path) -> bool:
    """Are the lines of a ledger those of this log, whatever `log/epoch` says? They are where most of the newest stand
    in the log at their places, byte for byte: another log has other events there. One that holds no line that can be
    read is this log's where that has events of the space."""
    lines = deque(ledger_lines(root / "log", []), TOLD_BY)
    same = other = 0
    for line in lines:
        message = await bus.get(line.seq)
        if message is not None:  # else it was erased, or has been trimmed
            same += message.data == line.raw
            other += message.data != line.raw
    if not lines:
        return await bus.last(space_subject(root.name)) is not None
    return same > other


def refilled(home: Home, space: str) -> bool:
    """Remove `log.old/` of a space once its new ledger holds every event of it; a damaged one is kept, renamed."""
    root = home.spaces / space
    damaged: list[str] = []
    if not _ids(root / "log.old", damaged) <= _ids(root / "log"):
        return False
    with translated_os(root):
        if not damaged:
            shutil.rmtree(root / "log.old")
            return True
        log.error("ledger_damaged", space=space, lines=len(damaged), first=damaged[0], kept=DAMAGED)
        (root / "log.old").rename(root / f"{DAMAGED}-{time.time_ns() // 1000}")
    return True


async def _publish(bus: Bus, space: str, folder: Path, blob_folder: Path) -> int:
    """Publish what of a ledger the log does not hold; how many that were."""
    return await republish(bus, space, ledger_lines(folder, []), blob_folder)


async def republish(bus: Bus, space: str, lines: Iterable[Line], blob_folder: Path) -> int:
    """Publish events of a ledger and their blobs again, in order, with the times of their first arrival; how many.

    What the log holds already is left out, so that repeating it after an interruption goes on.
    """
    there = await _there(bus, space)
    batch: list[Outgoing] = []
    published = 0
    for line in lines:
        raw = line.raw
        name, event = named(raw)
        if name in there:
            continue
        there.add(name)
        if event is not None:
            await _publish_blobs(bus, space, event, blob_folder)
        headers: Mapping[str, str] = {ARRIVED: str(micros(parse(line.at)))}
        batch.append(Outgoing(event_subject(space, event.type if event else "malformed"), raw, name, headers))
        if len(batch) == BATCH:
            await bus.publish_batch(batch)
            published += len(batch)
            batch = []
    if batch:
        await bus.publish_batch(batch)
        published += len(batch)
    return published


def named(raw: bytes) -> tuple[str, events.Event | None]:
    """What a message is known by, and its event: the id and what was said under it, since both of a conflict are
    kept; its bytes where it is no event."""
    try:
        event = events.decode(raw)
    except Invalid:
        return dead_id("", raw), None
    return f"{event.id} {event.sha256[:16]}", event


async def _there(bus: Bus, space: str) -> set[str]:
    """What of the space the log holds."""
    found: set[str] = set()
    subject = space_subject(space)
    if await bus.next(subject, 0) is None:
        return found
    reader = bus.read([subject], after=0, name="refill")
    try:
        while True:
            found.update(named(message.data)[0] for message in await reader.fetch(BATCH, 5.0))
            if not reader.pending:
                return found
    finally:
        await reader.close()


async def _publish_blobs(bus: Bus, space: str, event: events.Event, folder: Path) -> None:
    data = events.decode_data(event)
    for blob in events.blobs_of(data) if data is not None else ():
        path = folder / blob.sha256
        if path.exists():  # a blob that is gone was erased; the event that names it says so when it is folded
            await blobs.put(bus, space, path, media_type=blob.media_type)


def _ids(folder: Path, damaged: list[str] | None = None) -> set[str]:
    return {named(line.raw)[0] for line in ledger_lines(folder, damaged if damaged is not None else [])}
