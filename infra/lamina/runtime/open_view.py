"""One open view: brings messages of the log to the fold, and the fold's effect to disk."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct, structs

from lamina import events
from lamina.bus import Bus, Message
from lamina.bus import blobs as bus_blobs
from lamina.errors import Forgotten, Invalid
from lamina.ids import LANES, SUBJECT_ROOT
from lamina.log import get_logger
from lamina.runtime import reading
from lamina.runtime.apply import Batch, Cursor, Unwritable, read_meta
from lamina.runtime.files import FORGETTING_FILE, SpaceFiles
from lamina.runtime.following import Next, following
from lamina.runtime.history import history
from lamina.runtime.reading import Read
from lamina.runtime.spec import Recorded, Service
from lamina.store.files import write_atomic
from lamina.store.view import View

S = TypeVar("S", bound=Struct)
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

    @property
    def forgetting(self) -> bool:
        """Is something being forgotten in this space now?"""
        return (self._files.root / FORGETTING_FILE).exists()

    @property
    def erased_seq(self) -> int:
        """The position of the last tombstone that was folded."""
        return self._batch.erased_seq

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
        read = [one if isinstance(one, Read) else reading.read(one, self.space) for one in messages]
        if self._service.blobs and any(one.blobs for one in read):
            return await self._fold([await self._recorded(one) for one in read])
        return await self._fold([one.recorded for one in read])

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

    async def _recorded(self, found: Read) -> Recorded:
        """The message as fold sees it; what cannot be read is said in `error`, never raised."""
        recorded = found.recorded
        if not (found.blobs and self._service.blobs):
            return recorded
        kept: dict[str, bytes] = {}
        error = recorded.error
        try:
            for blob in found.blobs:
                kept[blob.sha256] = await self._keep(blob)
        except (Invalid, Forgotten) as unreadable:
            error = str(unreadable)
        return structs.replace(recorded, error=error, blobs=kept)

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


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
