"""One open view: brings messages of the log to the fold, and the fold's effect to disk."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct

from lamina import events
from lamina.bus import Bus, Message
from lamina.bus import blobs as bus_blobs
from lamina.errors import Forgotten, Invalid, Permanent
from lamina.ids import LANES, SUBJECT_ROOT, token
from lamina.log import get_logger
from lamina.runtime.apply import Batch, Cursor, Unwritable, read_meta
from lamina.runtime.files import SpaceFiles
from lamina.runtime.following import Next, following
from lamina.runtime.history import history
from lamina.runtime.refill import arrival_us
from lamina.runtime.spec import Recorded, Service
from lamina.store.files import write_atomic
from lamina.store.view import View

S = TypeVar("S", bound=Struct)
SHARED_BYTES = 4_096
log = get_logger()


def lane_subjects(lanes: Sequence[int]) -> list[str]:
    """All events of some lanes, as few subjects as that takes."""
    if len(lanes) == LANES:
        return [f"{SUBJECT_ROOT}.ev.>"]
    return [f"{SUBJECT_ROOT}.ev.{n}.>" for n in lanes]


class OpenView(Generic[S]):
    """One view in use. `lock` orders the tasks of this process; the SQLite lock orders processes."""

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        space: str,
        root: Path,
        view: View,
        files: SpaceFiles | None = None,
    ) -> None:
        self.space = space
        self.view = view
        self.lock = asyncio.Lock()
        self.users = 0
        self.dirty = False
        self._closed = False
        self._epoch = bus.epoch
        self._bus = bus
        self._service = service
        self._files = files or SpaceFiles(root, bus.epoch)
        self._batch = Batch(service, view.tables, self._files)

    @property
    def stands(self) -> bool:
        """May it be used on? Not when it was closed, replaced, or deleted, or when the log began a new epoch."""
        return not self._closed and self._epoch == self._bus.epoch and self.view.linked

    async def cursor(self) -> Cursor[S]:
        return await self.view.read(self._batch.read)

    async def look(self, now_us: int) -> tuple[Cursor[S], Next]:
        """State and what is to be decided of one moment: a rival's decision is in both of them or in neither."""

        def work(db: Any) -> tuple[Cursor[S], Next]:
            db.execute("BEGIN")
            try:
                cursor = self._batch.read(db)
                return cursor, following(self._service, db, cursor.state, now_us)
            finally:
                db.execute("ROLLBACK")

        return await self.view.read(work)

    async def check(self) -> None:
        """`Damaged` when the ledger is not what the view knows it to be."""
        held = await self.view.read(lambda db: int(read_meta(db, "ledger_seq", 0)))
        await asyncio.to_thread(self._files.check_ledger, held)

    async def fold(self, messages: Sequence[Message]) -> Cursor[S]:
        """Apply a batch durably against a crash of the process; `checkpoint` makes it durable against a power cut."""
        return await self._fold([self._plain(message) or await self._recorded(message) for message in messages])

    async def _fold(self, batch: Sequence[Recorded]) -> Cursor[S]:
        """The event whose rows cannot be written is parked; the others of its batch, halved until it is found, are
        not."""
        try:
            return await self._transaction(lambda db: self._batch.apply(db, batch))
        except Unwritable as error:
            if len(batch) == 1:
                return await self._transaction(partial(self._batch.park, recorded=batch[0], error=str(error)))
        await self._fold(batch[: len(batch) // 2])
        return await self._fold(batch[len(batch) // 2 :])

    async def _transaction(self, work: Callable[[Any], Cursor[S]]) -> Cursor[S]:
        cursor = await self.view.transaction(work)
        self._batch.committed(cursor)
        self.dirty = True
        return cursor

    async def catch_up(self, until: int) -> Cursor[S]:
        """Fold everything of the space below `until` that the view has not seen."""
        cursor = await self.cursor()
        name = f"{self._service.name}-catch-up"
        parts = history(self._bus, self._files.root, after=cursor.seq, until=until, name=name)
        async with contextlib.aclosing(parts):
            async for messages in parts:
                cursor = await self.fold(messages)
        return cursor

    def _plain(self, message: Message) -> Recorded | None:
        """The message as fold sees it, where no blob must be fetched first: nearly always."""
        if len(message.data) > SHARED_BYTES:
            return None
        event, data, blobs, error = _read_once(message.data, self.space)
        if blobs and self._service.blobs:
            return None
        at_us = arrival_us(message)
        return Recorded(seq=message.seq, at_us=at_us, raw=message.data, event=event, data=data, error=error)

    async def _recorded(self, message: Message) -> Recorded:
        """The message as fold sees it; what cannot be read is said in `error`, never raised."""
        at_us = arrival_us(message)
        read = _read_once if len(message.data) <= SHARED_BYTES else _read
        event, data, blobs, error = read(message.data, self.space)
        found: dict[str, bytes] = {}
        if self._service.blobs and blobs:
            try:
                for blob in blobs:
                    found[blob.sha256] = await self._keep(blob)
            except (Invalid, Forgotten) as unreadable:
                error = str(unreadable)
        return Recorded(
            seq=message.seq, at_us=at_us, raw=message.data, event=event, data=data, error=error, blobs=found
        )

    async def _keep(self, blob: events.Blob) -> bytes:
        """The bytes of a blob, kept on disk before the line that names it. Content-addressed: no lock is needed."""
        path = self._files.blob_path(blob.sha256)
        if path.exists():
            data = await asyncio.to_thread(path.read_bytes)
            if len(data) == blob.size_bytes and await asyncio.to_thread(_sha256, data) == blob.sha256:
                return data
            log.warning("blob_damaged", service=self._service.name, space=self.space, sha256=blob.sha256)
        data = await bus_blobs.get(self._bus, self.space, blob.sha256, blob.size_bytes)
        await asyncio.to_thread(write_atomic, path, data)
        return data

    async def checkpoint(self) -> None:
        if self.dirty:
            self.dirty = False
            try:
                await self.view.checkpoint()
            except BaseException:
                self.dirty = True
                raise

    async def close(self) -> None:
        self._closed = True
        await self.view.close()
        self._files.close()


def _read(raw: bytes, space: str) -> tuple[events.Event | None, events.Data | None, tuple[events.Blob, ...], str]:
    """Event, data and blobs of a message, as far as they can be read, and what cannot be."""
    try:
        event = _event(raw, space)
    except Invalid as invalid:
        return None, None, (), str(invalid)
    try:
        data = events.decode_data(event)
    except Invalid as invalid:
        return event, None, (), str(invalid)
    return event, data, events.blobs_of(data) if data is not None else (), ""


# The services of one process read the same messages at about the same time; both results are immutable.
_read_once = lru_cache(maxsize=2_048)(_read)


def _event(raw: bytes, space: str) -> events.Event:
    """The event in a message of `space`; `Invalid` for one that is not on one line, or that names another space."""
    if b"\n" in raw or b"\r" in raw:
        raise Invalid("the event is not on one line; it was not written by a Lamina client")
    event = events.decode(raw)
    try:
        own = token(event.space) == space
    except Permanent:
        own = False
    if not own:
        raise Invalid(f"event {event.id} was published to another space than it names")
    return event


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
