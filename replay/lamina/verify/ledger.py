"""The log and the ledger of a space read beside one another, event by event; and the blobs that they name."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from lamina import events
from lamina.bus import Bus, Message
from lamina.errors import Invalid
from lamina.events import MemoryForgotten
from lamina.ids import blob_subject, untoken
from lamina.runtime.files import ledger_epoch
from lamina.runtime.history import (
    FETCH_S,
    TRIMMED_FILE,
    arrival_us,
    ledger_files,
    ledger_line,
    space_subject,
    trimmed,
)
from lamina.runtime.refill import named, of_this_log
from lamina.times import micros, parse
from lamina.verify.records import Finding

BATCH = 1_000
MOST = 20
"""Findings of one kind named one by one; the rest is counted."""


class Look(Struct):
    """What was seen of one space: `last` is the last position, `blobs` those that events name, with their sizes,
    `erased` the ids that tombstones name, `alone` the events that the log should hold and does not. Not `whole`: the
    past cannot be read as it is, and nothing can be held against it."""

    space: str
    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    events: int = 0
    last: int = 0
    blobs: dict[str, int] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    alone: set[int] = field(default_factory=set)
    whole: bool = True

    def find(self, what: str, where: str, detail: str, heal: str = "", *, lost: bool = False) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        if self.counts[what] <= MOST:
            name = untoken(self.space)
            self.findings.append(
                Finding(space=name, what=what, where=where, detail=detail, heal=self._command(heal), lost=lost)
            )

    def rest(self) -> None:
        """Say how many findings of each kind were not named."""
        for what, count in self.counts.items():
            if count > MOST:
                same = next(one for one in self.findings if one.what == what)
                self.findings.append(
                    Finding(
                        space=same.space,
                        what=what,
                        where="…",
                        detail=f"{count - MOST} more like these",
                        heal=same.heal,
                        lost=same.lost,
                    )
                )

    def _command(self, verb: str) -> str:
        name = untoken(self.space)
        quoted = shlex.quote(name)
        return f"lamina {verb} --space {quoted}" if verb and not verb.startswith("rm ") else verb


def orphan(path: Path) -> str:
    """The command that removes a file that nothing names."""
    return f"rm {shlex.quote(str(path))}"


class Entry(Struct, frozen=True):
    """A line of the ledger as it stands: its message's name and bytes' digest."""

    seq: int
    at_us: int
    raw: bytes
    where: str


MOST_BEYOND = 10_000
YOUNG_S = 60.0
"""A younger blob may be on its way: it is written before the line that names it."""
MEND = "replay rebuild ledger"
FORGET = "forget --rest"


async def compare(bus: Bus, root: Path, look: Look, *, applied: int) -> None:
    """Every event of the space in both, in one pass and flat memory. `applied` is how far the journal has come: what
    lies beyond is not yet to be in the ledger."""
    epoch = ledger_epoch(root)
    if epoch is not None and epoch != bus.epoch:
        mine = await of_this_log(bus, root)
        detail = f"it is of epoch {epoch!r}, the log of {bus.epoch!r}"
        if not mine:
            look.find("ledger.epoch", "log/epoch", detail, "up")
            return
        look.find("ledger.epoch", "log/epoch", f"{detail}, yet its lines are the log's", MEND)
    try:
        gone = trimmed(root, bus.epoch)
    except Invalid as error:
        look.find("ledger.mark", TRIMMED_FILE, str(error), MEND)
        look.whole = False
        first = await bus.next(space_subject(root.name), 0)
        gone = first.seq - 1 if first is not None else (await bus.info()).last_seq
    entries = _Entries(root, look, gone)
    absent: dict[str, int] = {}
    info = await bus.info()
    reader = bus.read([space_subject(root.name)], after=0, name="verify")
    last = await bus.last(space_subject(root.name))
    end = last.seq if last is not None else 0
    try:
        while look.last < end:
            messages = await reader.fetch(BATCH, FETCH_S)
            if not messages:
                break
            await asyncio.to_thread(_beside, messages, entries, look, gone, applied, absent)
            look.last = messages[-1].seq
    finally:
        await reader.close()
    beyond = await asyncio.to_thread(_left, entries, look, gone, info.last_seq)
    now = (await bus.info()).last_seq
    for entry in beyond:  # what was said since is none
        if entry.seq > now:
            look.find("ledger.order", entry.where, f"event {entry.seq} is beyond the end of the log", MEND)
    if absent:
        await asyncio.to_thread(_missing, root, look, absent)


def _beside(
    messages: list[Message], entries: _Entries, look: Look, gone: int, applied: int, absent: dict[str, int]
) -> None:
    for message in messages:
        for alone in entries.before(message.seq):
            _only_in_ledger(alone, look, gone)
        look.events += 1
        entry = entries.at(message.seq)
        _note_blobs(message.data, look)
        if entry is None:
            if message.seq <= applied:
                absent.setdefault(named(message.data)[0], message.seq)
        elif entry.raw != message.data:
            look.find("ledger.differs", entry.where, f"event {message.seq} has other bytes in the log", MEND)
        elif entry.at_us != arrival_us(message):
            look.find("ledger.differs", entry.where, f"event {message.seq} arrived at another time", MEND)


def _left(entries: _Entries, look: Look, gone: int, last_seq: int) -> list[Entry]:
    """What the ledger has behind the last event that the log has; returned is what lies beyond the log's end."""
    beyond: list[Entry] = []
    for entry in entries.before(1 << 62):
        if entry.seq <= last_seq:
            _only_in_ledger(entry, look, gone)
        elif len(beyond) < MOST_BEYOND:
            beyond.append(entry)
    return beyond


def _only_in_ledger(entry: Entry, look: Look, gone: int) -> None:
    look.events += 1
    _note_blobs(entry.raw, look)
    look.last = max(look.last, entry.seq) if entry.seq <= gone else look.last
    if entry.seq > gone:
        look.find("log.missing", entry.where, f"event {entry.seq} is in the ledger alone", MEND)
        look.alone.add(entry.seq)


def _missing(root: Path, look: Look, absent: dict[str, int]) -> None:
    """Events of the log that have no line: repetitions need none, the first of an id does."""
    for entry in _Entries(root, Look(space=look.space)).before(1 << 62):
        absent.pop(named(entry.raw)[0], None)
    for name, seq in sorted(absent.items(), key=lambda pair: pair[1]):
        if name.partition(" ")[0] in look.erased:
            detail = f"event {seq} was published again after it was erased on request; every view passes it over"
            look.find("log.erased", "bus/", detail, FORGET)
        else:
            look.find("ledger.missing", "log/", f"event {seq} of the log has no line", MEND)


def _note_blobs(raw: bytes, look: Look) -> None:
    if b'"type":"memory.forgotten"' not in raw and b'"sha256":' not in raw[raw.find(b'"data":') :]:
        return
    try:
        data = events.decode_data(events.decode(raw))
    except Invalid:
        return
    if isinstance(data, MemoryForgotten):
        look.erased.update(data.ids)
    for blob in events.blobs_of(data) if data is not None else ():
        look.blobs[blob.sha256] = blob.size_bytes


class _Entries:
    """The ledger's lines in order, one looked at ahead; what is wrong with a line is found here."""

    def __init__(self, root: Path, look: Look, gone: int = 0) -> None:
        self._look = look
        self._gone = gone
        self._before = 0
        self._lines = self._read(root)
        self._next: Entry | None = next(self._lines, None)

    def before(self, seq: int) -> Iterator[Entry]:
        """The lines up to, and without, the one of `seq`."""
        while self._next is not None and self._next.seq < seq:
            entry, self._next = self._next, next(self._lines, None)
            yield entry

    def at(self, seq: int) -> Entry | None:
        if self._next is None or self._next.seq != seq:
            return None
        entry, self._next = self._next, next(self._lines, None)
        return entry

    def _read(self, root: Path) -> Iterator[Entry]:
        files = ledger_files(root / "log")
        for path in files:
            with path.open("rb") as file:
                for number, raw in enumerate(file, 1):
                    where = f"log/{path.name}:{number}"
                    if not raw.endswith(b"\n"):
                        if path != files[-1]:  # of the newest one the journal may be writing just now
                            self._look.find("ledger.damaged", where, "a line that does not end", MEND)
                        break
                    entry = self._entry(raw, where)
                    if entry is not None and entry.seq <= self._before:
                        self._look.find(
                            "ledger.order", where, f"event {entry.seq} stands behind {self._before}", MEND
                        )
                    elif entry is not None:
                        self._before = entry.seq
                        yield entry

    def _entry(self, raw: bytes, where: str) -> Entry | None:
        try:
            line = ledger_line(raw)
            if line.malformed is None:
                events.decode(line.raw)
            return Entry(line.seq, micros(parse(line.at)), line.raw, where)
        except Invalid as error:
            self._look.find("ledger.damaged", where, str(error), MEND, lost=self._before < self._gone)
            return None


async def blobs(bus: Bus, root: Path, look: Look, also: set[str]) -> None:
    """Blobs that events name are on disk, whole, and no others; `also` are those that services keep."""
    folder = root / "blobs"
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted(there - look.blobs.keys() - also):
        young = time.time() - (folder / name).stat().st_mtime < YOUNG_S
        if not name.startswith(".") and not young:
            look.find("blob.orphan", f"blobs/{name}", "no event names it", orphan(folder / name))
    for sha256 in sorted(look.blobs.keys() | also):
        if sha256 in there and await asyncio.to_thread(_sha256, folder / sha256) == sha256:
            continue
        what, detail = ("blob.damaged", "its bytes do not fit its name") if sha256 in there else ("blob.missing", "")
        kept = sha256 in also - look.blobs.keys() or await bus.last(blob_subject(look.space, sha256)) is not None
        heal = MEND if sha256 in look.blobs else "replay rebuild offload"
        look.find(what, f"blobs/{sha256}", detail, heal if kept else "", lost=not kept)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
