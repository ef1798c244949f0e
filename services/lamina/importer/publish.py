"""Publish a log: in atomic batches, never far ahead of the journal, and only what is not there yet.

Everything can be stopped at any point and begun again: a batch is in the log whole or not at all, and what is in
the log is known by its id the next time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina import events, ids, times
from lamina.bus import Bus, Outgoing, Subscription, blobs
from lamina.client.redact import Redactor
from lamina.errors import Conflict, Invalid, LaminaError, Permanent, Timeout, Transient
from lamina.events import CHUNK_BYTES
from lamina.importer.log import Log
from lamina.importer.prepare import Prepared, label, prepare
from lamina.importer.progress import Progress
from lamina.importer.records import BadRecord, Call, Record, Skipped, Turn
from lamina.requests import Known, KnownIds, Position, Settled

BATCH_EVENTS = 500
BATCH_BYTES = 8 * 1024 * 1024
BATCH_PARTS = 400
"""Small blobs that travel inside a batch; those beyond go before it. With the events they stay below 1,000."""
PATIENCE_S = 30.0
ANSWER_S = 5.0
NEWS_S = 0.5
JOURNAL_S = 120.0
"""How long the journal may take for a batch before the import gives up."""

FORGOTTEN = ""
"""The checksum that memory gives for what was erased on request: its id is known, its content is not."""

R = TypeVar("R", bound=Struct)
T = TypeVar("T")


class Publisher:
    """Publishes logs into one space. `bus` gives the connection as it is now, or raises `Unavailable`.

    While the log is away every step is tried again for 30 s; then `Unavailable` or `Timeout` is raised, and the
    same import goes on later where it stopped. `Full` and `Denied` are raised at once. What was forgotten is skipped,
    or with `again` remembered anew, under other ids.
    """

    def __init__(
        self,
        bus: Callable[[], Bus],
        space: str,
        *,
        skip_bad: bool = False,
        again: bool = False,
        on_bad: Callable[[BadRecord], None] = lambda bad: None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        redactor: Redactor | None = None,
    ) -> None:
        self._bus = bus
        self._space = space
        self._token = ids.token(space)
        self._skip_bad = skip_bad
        self._again = again
        self._on_bad = on_bad
        self._on_progress = on_progress
        self._redactor = redactor or Redactor()
        self._sent: deque[dict[str, str]] = deque(maxlen=8)  # batches the journal may not know yet: id -> sha256
        self._blobs: deque[set[str]] = deque(maxlen=8)
        self._folding: deque[asyncio.Task[None]] = deque()
        self._asking: deque[asyncio.Task[dict[str, str]]] = deque()
        self._folded_seq = 0
        self._moved = asyncio.Event()

    async def publish(self, log: Log) -> Progress:
        """Publish every record of `log`; returns the report once all are fsynced in the log.

        The first bad record stops the import with `Invalid`, unless bad ones are skipped: what stands before it is
        published. What is in memory already changes nothing; other content under the same id is a bad record.
        """
        progress = Progress(file=log.file, format=log.format, size_bytes=log.size_bytes)
        begun = monotonic()
        batches = _batches(log, self._space, progress, times.aware(None), self._redactor)
        ahead: asyncio.Queue[_Ahead | None] = asyncio.Queue(maxsize=1)
        news = await self._listen()
        reading = asyncio.create_task(self._read_ahead(log, batches, ahead), name="lamina-import-read")
        try:
            while (read := await _either(ahead.get(), reading)) is not None:
                stop = await self._publish(read.batch, await self._asking.popleft(), progress)
                progress.position_bytes = read.position_bytes
                progress.seconds = monotonic() - begun
                self._on_progress(progress)
                if stop is not None:
                    raise Invalid(f"{stop}; repair it, or leave out what cannot be taken with --skip-bad")
            while self._folding:
                await self._folding.popleft()
        finally:
            under_way = [reading, *self._folding, *self._asking]
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            self._folding.clear()
            self._asking.clear()
            if news is not None:
                with contextlib.suppress(LaminaError):
                    await news.close()
        return progress

    async def settled(self, layers: Sequence[str] | None, timeout_s: float) -> None:
        """Return once everything published is folded by `layers` (None: by all); `Timeout` says what is behind."""
        request = Settled(timeout_s=timeout_s, layers=None if layers is None else tuple(layers))
        await self._ask("settled", request, Position, timeout_s + 1.0)

    async def _read_ahead(
        self, log: Log, batches: Iterator[list[Prepared | BadRecord]], ahead: asyncio.Queue[_Ahead | None]
    ) -> None:
        """Read and look up the next batches while one is published; None ends them."""
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            self._asking.append(asyncio.create_task(self._stored(batch), name="lamina-import-known"))
            await ahead.put(_Ahead(batch, log.position_bytes))
        await ahead.put(None)

    async def _publish(
        self, batch: Sequence[Prepared | BadRecord], there: dict[str, str], progress: Progress
    ) -> BadRecord | None:
        """Publish what of a batch is not there yet; returns the bad record that stops the import, if any."""
        for sent in self._sent:
            there |= sent
        fresh: list[Prepared] = []
        stop: BadRecord | None = None
        for entry in batch:
            found = there.get(entry.event.id) if isinstance(entry, Prepared) else None
            if found == FORGOTTEN:
                progress.skipped["forgotten on request"] = progress.skipped.get("forgotten on request", 0) + 1
                continue
            if isinstance(entry, BadRecord) or (found is not None and found != entry.event.sha256):
                bad = entry if isinstance(entry, BadRecord) else _conflict(entry)
                progress.bad += 1
                self._on_bad(bad)
                if not self._skip_bad:
                    stop = bad
                    break
            elif found is not None:
                progress.known += 1
            else:
                there[entry.event.id] = entry.event.sha256
                fresh.append(entry)
        if fresh:
            while len(self._folding) > 1:  # at most two batches are not folded yet
                await self._folding.popleft()
            seq = await self._append(fresh)
            self._sent.append({entry.event.id: entry.event.sha256 for entry in fresh})
            self._folding.append(asyncio.create_task(self._folded(seq), name="lamina-import-folded"))
        progress.turns += sum(isinstance(entry.record, Turn) for entry in fresh)
        progress.calls += sum(isinstance(entry.record, Call) for entry in fresh)
        return stop

    async def _stored(self, batch: list[Prepared | BadRecord]) -> dict[str, str]:
        """id -> sha256 of those that memory holds; what was sent since it was asked is in `_sent`. What was forgotten
        gets another id where it is to be remembered again: the old one stays dead."""
        there: dict[str, str] = {}
        asked = {entry.event.id: n for n, entry in enumerate(batch) if isinstance(entry, Prepared)}
        while asked:
            request = Known(ids=tuple(asked))
            stored = await self._patiently(lambda: self._ask("known", request, KnownIds, ANSWER_S))  # noqa: B023 - awaited
            there |= {id: sha256 for id, (_, sha256) in stored.ids.items()}
            dead = [n for id, n in asked.items() if self._again and there.get(id) == FORGOTTEN]
            asked = {_anew(batch, n): n for n in dead}
        return there

    async def _listen(self) -> Subscription | None:
        """Hear how far the journal is; where that cannot be, it is asked."""
        try:
            return await self._bus().listen(ids.applied_subject(self._token, "journal"), self._on_applied)
        except Transient:
            return None

    def _on_applied(self, _: str, seq: bytes) -> None:
        if seq.isdigit():
            self._folded_seq = int(seq)
            self._moved.set()

    async def _folded(self, seq: int | None) -> None:
        """Return once the journal has what was published up to `seq`; it is asked when nothing is heard of it."""
        while seq is None or self._folded_seq < seq:
            self._moved.clear()
            try:
                async with asyncio.timeout(0 if seq is None else NEWS_S):
                    await self._moved.wait()
            except TimeoutError:
                request = Settled(timeout_s=JOURNAL_S, layers=("journal",))
                await self._ask("settled", request, Position, JOURNAL_S + 1.0)
                return

    async def _append(self, batch: Sequence[Prepared]) -> int | None:
        """Append a batch, its blobs before it; a doubt about what is stored is settled event by event. Returns the
        position of the last event where it is known."""
        messages: list[Outgoing] = []
        inside: set[str] = set()
        for prepared in batch:
            for blob, data in prepared.blobs:
                if blob.sha256 in inside or any(blob.sha256 in known for known in self._blobs):
                    continue
                if len(data) <= CHUNK_BYTES and len(inside) < BATCH_PARTS:
                    subject = ids.blob_subject(self._token, blob.sha256)
                    messages.append(Outgoing(subject, data, None, {blobs.CHUNK: "1/1"}))
                else:
                    await self._put(data)
                inside.add(blob.sha256)
            messages.append(self._outgoing(prepared))
        seq: int | None = None
        try:
            seq = (await self._patiently(lambda: self._bus().publish_batch(messages), but=Timeout)).seq
        except (Conflict, Timeout):
            await self._one_by_one(batch)
        self._blobs.append(inside)
        return seq

    async def _one_by_one(self, batch: Sequence[Prepared]) -> None:
        for prepared in batch:
            for _, data in prepared.blobs:
                await self._put(data)
            await self._put_event(self._outgoing(prepared))

    async def _put(self, data: bytes) -> None:
        await self._patiently(lambda: blobs.put(self._bus(), self._token, data))

    async def _put_event(self, message: Outgoing) -> None:
        await self._patiently(lambda: self._bus().publish(message.subject, message.data, id=message.id))

    def _outgoing(self, prepared: Prepared) -> Outgoing:
        return Outgoing(ids.event_subject(self._token, prepared.event.type), prepared.raw, prepared.event.id)

    async def _ask(self, verb: str, request: Struct, kind: type[R], timeout_s: float) -> R:
        subject = ids.rpc_subject(self._token, verb)
        reply = await self._bus().request(subject, msgspec.json.encode(request), timeout_s=timeout_s)
        return msgspec.json.decode(reply, type=kind)

    async def _patiently(self, step: Callable[[], Awaitable[T]], *, but: type[LaminaError] | None = None) -> T:
        """`step`, tried again while the log is away, 30 s long; an error of kind `but` is raised at once."""
        until = monotonic() + PATIENCE_S
        wait_s = 0.1
        while True:
            try:
                return await step()
            except Transient as error:
                if (but is not None and isinstance(error, but)) or monotonic() + wait_s > until:
                    raise
            await asyncio.sleep(wait_s)
            wait_s = min(2.0, wait_s * 2)


class _Ahead(Struct, frozen=True):
    """A batch that was read, and how far the log was read."""

    batch: list[Prepared | BadRecord]
    position_bytes: int


async def _either(wanted: Coroutine[Any, Any, T], worker: asyncio.Task[None]) -> T:
    """What is wanted; where the worker that brings it fails, its error."""
    task = asyncio.create_task(wanted)
    try:
        await asyncio.wait({task, worker}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and worker.done():
            worker.result()  # raises; a worker that ended well has left its last word in the queue
        return await task
    finally:
        task.cancel()


def _batches(
    log: Log, space: str, progress: Progress, now: datetime, redactor: Redactor
) -> Iterator[list[Prepared | BadRecord]]:
    """The log in batches. What has no time gets the time of the import, a microsecond apart, so that it keeps its
    order."""
    batch: list[Prepared | BadRecord] = []
    size_bytes = 0
    sessions: set[str] = set()
    for n, item in enumerate(log):
        if isinstance(item, Skipped):
            progress.skipped[item.why] = progress.skipped.get(item.why, 0) + 1
            continue
        batch.append(_entry(item, space, now + timedelta(microseconds=n), redactor))
        if not isinstance(item, BadRecord):
            sessions.add(item.session)
            progress.sessions = len(sessions)
        last = batch[-1]
        size_bytes += last.size_bytes if isinstance(last, Prepared) else 0
        if len(batch) >= BATCH_EVENTS or size_bytes >= BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    yield batch


def _entry(item: Record | BadRecord, space: str, unknown_time: datetime, redactor: Redactor) -> Prepared | BadRecord:
    if isinstance(item, BadRecord):
        return item
    try:
        if isinstance(item, Call):
            arguments, result = redactor.value(item.arguments), redactor.text(item.result)
            item = replace(item, arguments=arguments, result=result)
        return prepare(item, space, unknown_time)
    except Permanent as error:
        return BadRecord.at(item.source, f"{label(item)}: {error}")


def _anew(batch: list[Prepared | BadRecord], n: int) -> str:
    """Give the `n`-th event of a batch the id that it has when it is told once more; what that is."""
    entry = batch[n]
    if not isinstance(entry, Prepared):
        return ""
    event = replace(entry.event, id=ids.derived_id("again", entry.event.id))
    batch[n] = replace(entry, event=event, raw=events.encode(event))
    return event.id


def _conflict(entry: Prepared) -> BadRecord:
    return BadRecord.at(
        entry.source,
        f"{label(entry.record)} of session {entry.record.session} is in memory with other content: give the "
        "conversation an id or the file a name of its own",
    )
