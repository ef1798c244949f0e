"""All events of one space in log order, also those that the log holds no more.

`log/trimmed` in a space names the seq up to which the log may have let its events go, because the ledger was
verified to hold them. Up to there the ledger is read, from there on the log: a reader sees no seam, wherever the
log was trimmed, and even while it is.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Iterator
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from lamina import events
from lamina.bus import Bus, Message
from lamina.errors import Invalid
from lamina.ids import SUBJECT_ROOT, lane
from lamina.log import get_logger
from lamina.runtime.files import ledger_epoch
from lamina.store.files import translated_os, write_atomic
from lamina.times import micros, parse

ARRIVED = "Lamina-Arrived"
TRIMMED_FILE = "log/trimmed"
BATCH = 500
FETCH_S = 5.0
COUNT_BYTES = 1 << 20
log = get_logger()


class Line(Struct, frozen=True):
    """A line of the ledger: an event (empty where there is none), or the bytes of a message that is no event."""

    seq: int
    at: str
    event: Raw = Raw()
    malformed: str | None = None

    @property
    def raw(self) -> bytes:
        """The message that the line holds, as it came."""
        return bytes(self.event) if self.malformed is None else base64.b64decode(self.malformed)


_decoder = msgspec.json.Decoder(Line)


def space_subject(space: str) -> str:
    """All events of one space (its token)."""
    return f"{SUBJECT_ROOT}.ev.{lane(space)}.{space}.>"


def arrival_us(message: Message) -> int:
    """When a message came into the log for the first time, also if it was published again since."""
    text = (message.headers or {}).get(ARRIVED, "")
    return int(text) if text.isdigit() else message.at_us


def ledger_files(folder: Path) -> list[Path]:
    """The files of a ledger, oldest first."""
    return sorted(folder.glob("*.jsonl"))


def ledger_lines(folder: Path, damaged: list[str] | None = None, *, after: int = 0) -> Iterator[Line]:
    """The whole lines of a ledger, in its order; a torn last one is left out. Files that end before `after` are
    not read.

    A line that is none is named in `damaged` and passed over; without such a list it is `Invalid`.
    """
    files = ledger_files(folder)
    begin = [_first_seq(path) for path in files] if after else []
    for index, path in enumerate(files):
        if after and index + 1 < len(files) and 0 < begin[index + 1] <= after + 1:
            continue
        with translated_os(path), path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    break
                try:
                    yield ledger_line(raw)
                except Invalid as error:
                    where = f"{path}, line {number}: {error}"
                    if damaged is None:
                        raise Invalid(f"{where}; `lamina replay rebuild ledger` mends it from the log") from error
                    damaged.append(where)


def ledger_line(raw: bytes) -> Line:
    """`Invalid` when `raw` is no line of a ledger."""
    try:
        line = _decoder.decode(raw)
        if line.malformed is not None:
            base64.b64decode(line.malformed, validate=True)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Invalid(f"no ledger line ({error})") from error
    return line


def ledger_count(folder: Path) -> int:
    """How many lines a ledger has, without reading what they hold."""
    count = 0
    for path in ledger_files(folder):
        with translated_os(path), path.open("rb") as file:
            while part := file.read(COUNT_BYTES):
                count += part.count(b"\n")
    return count


def trimmed(root: Path, epoch: str) -> int:
    """Up to which seq of `epoch` the log may hold no events of the space at `root` any more; 0: it holds them all."""
    path = root / TRIMMED_FILE
    with translated_os(path):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return 0
    of, _, rest = text.strip().partition(" ")
    seq = rest.partition(" ")[0]
    if not seq.isdigit() or text != _mark(of, int(seq)):
        raise Invalid(f"{path} is damaged; `lamina replay rebuild ledger` writes it anew from what the log holds")
    return int(seq) if of == epoch else 0


def mark_trimmed(root: Path, epoch: str, seq: int) -> None:
    """Say, durably, that up to `seq` the ledger alone need hold the events of the space at `root`."""
    write_atomic(root / TRIMMED_FILE, _mark(epoch, seq).encode())


def _mark(epoch: str, seq: int) -> str:
    """A flipped digit would hide events: the mark has a checksum."""
    text = f"{epoch} {seq}"
    return f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n"


def ledger_messages(root: Path, *, after: int, until: int, damaged: list[str] | None = None) -> Iterator[Message]:
    """The ledger's events with `after` < seq < `until`, in its order, as messages of the log.

    A damaged line, or one whose event does not fit its checksum, costs that line: it is named in `damaged`, else in
    the process's log.
    """
    found: list[str] = []
    before = after
    for line in ledger_lines(root / "log", found, after=after):
        if after < line.seq < until:
            if line.seq <= before and damaged is None:  # a fold takes events in order, and would pass over it unsaid
                found.append(f"line of event {line.seq} stands behind that of {before}")
            before = max(before, line.seq)
            try:
                yield Message(line.seq, "", checked(line), micros(parse(line.at)))
            except Invalid as error:
                found.append(f"line of event {line.seq}: {error}")
    if damaged is not None:
        damaged += found
    elif found:
        remedy = "lamina replay rebuild ledger"
        log.error("ledger_damaged", space=root.name, lines=len(found), first=found[0], remedy=remedy)


def checked(line: Line) -> bytes:
    """The message that a line holds; `Invalid` where it was an event, and is none any more."""
    raw = line.raw
    if line.malformed is None:
        events.decode(raw)
    return raw


async def history(
    bus: Bus, root: Path, *, after: int, until: int, name: str, batch: int = BATCH
) -> AsyncGenerator[list[Message], None]:
    """The events of the space at `root` with `after` < seq < `until`, in order, at most `batch` at once.

    Raises as `Bus.read`; `Invalid` where `log/trimmed` cannot be read.
    """
    subject = space_subject(root.name)
    while True:
        gone = max(trimmed(root, bus.epoch), await _unseen(bus, root) if after == 0 else 0)
        if after < gone:
            lines = ledger_messages(root, after=after, until=min(until, gone + 1))
            while messages := await asyncio.to_thread(lambda: list(islice(lines, batch))):  # noqa: B023 - awaited
                yield messages
            after = gone
        first = await bus.next(subject, after)
        if first is None or first.seq >= until:
            return
        reader = bus.read([subject], after=after, name=name)
        try:
            while True:
                messages = await reader.fetch(batch, FETCH_S)
                if trimmed(root, bus.epoch) > after:
                    break  # trimmed while it was read: what was fetched may have a hole
                below = [message for message in messages if message.seq < until]
                if below:
                    yield below
                    after = below[-1].seq
                if len(below) < len(messages) or not reader.pending:
                    return
        finally:
            await reader.close()


async def _unseen(bus: Bus, root: Path) -> int:
    """Up to which seq a space's ledger may hold events that the log does not, whatever the mark says: it may be lost
    with its file."""
    if ledger_epoch(root) != bus.epoch:
        return 0
    first = await bus.next(space_subject(root.name), 0)
    return first.seq - 1 if first is not None else (await bus.info()).last_seq


def _first_seq(path: Path) -> int:
    """The seq of the first line of a ledger file; 0 where it cannot be told."""
    with translated_os(path), path.open("rb") as file:
        raw = file.readline()
    try:
        return ledger_line(raw).seq
    except Invalid:
        return 0


async def seq_at(bus: Bus, root: Path, when_us: int) -> int:
    """The seq of the last event of the space at `root` that had arrived by `when_us`; 0 where none had."""
    last = 0
    async with contextlib.aclosing(history(bus, root, after=0, until=1 << 62, name="as-of")) as parts:
        async for messages in parts:
            for message in messages:
                if arrival_us(message) > when_us:
                    return last
                last = message.seq
    return last
