"""The open views of one service: opened at first use, rebuilt when they are stale, closed when long unused."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog
from msgspec import Struct

from lamina import events
from lamina.bus import Bus, Message
from lamina.bus import blobs as bus_blobs
from lamina.errors import Busy, Forgotten, Invalid
from lamina.home import Home, Lock
from lamina.ids import LANES, SUBJECT_ROOT, lane
from lamina.runtime.apply import Batch, Cursor, read_meta, write_meta
from lamina.runtime.files import SpaceFiles
from lamina.runtime.refill import arrival_us
from lamina.runtime.spec import Recorded, Service
from lamina.store.driver import Damaged
from lamina.store.files import write_atomic
from lamina.store.view import View, generation, generation_path, switch

S = TypeVar("S", bound=Struct)
CATCH_UP_BATCH = 500
log = structlog.get_logger()


def space_subject(space: str) -> str:
    """All events of one space (its token)."""
    return f"{SUBJECT_ROOT}.ev.{lane(space)}.{space}.>"


def lane_subjects(lanes: Sequence[int]) -> list[str]:
    """All events of some lanes, as few subjects as that takes."""
    if len(lanes) == LANES:
        return [f"{SUBJECT_ROOT}.ev.>"]
    return [f"{SUBJECT_ROOT}.ev.{n}.>" for n in lanes]


class OpenView(Generic[S]):
    """One view in use. `lock` orders the tasks of this process; the SQLite lock orders processes."""

    def __init__(self, service: Service[S], bus: Bus, space: str, root: Path, view: View) -> None:
        self.space = space
        self.view = view
        self.lock = asyncio.Lock()
        self.users = 0
        self.dirty = False
        self._bus = bus
        self._service = service
        self._files = SpaceFiles(root, bus.epoch)
        self._batch = Batch(service, view.tables, self._files)

    async def cursor(self) -> Cursor[S]:
        return await self.view.read(self._batch.read)

    async def fold(self, messages: Sequence[Message]) -> Cursor[S]:
        """Apply a batch durably against a crash of the process; `checkpoint` makes it durable against a power cut."""
        batch = [await self._recorded(message) for message in messages]
        cursor = await self.view.transaction(lambda db: self._batch.apply(db, batch))
        self._batch.committed(cursor)
        self.dirty = True
        return cursor

    async def catch_up(self, until: int) -> Cursor[S]:
        """Fold everything of the space below `until` that the view has not seen."""
        cursor = await self.cursor()
        subject = space_subject(self.space)
        first = await self._bus.next(subject, cursor.seq)
        if first is None or first.seq >= until:
            return cursor
        reader = self._bus.read([subject], after=cursor.seq, name=f"{self._service.name}-catch-up")
        try:
            while True:
                messages = await reader.fetch(CATCH_UP_BATCH, 5.0)
                below = [message for message in messages if message.seq < until]
                if below:
                    cursor = await self.fold(below)
                if len(below) < len(messages) or not reader.pending:
                    return cursor
        finally:
            await reader.close()

    async def _recorded(self, message: Message) -> Recorded:
        """The message as fold sees it; what cannot be read is said in `error`, never raised."""
        try:
            event = _event(message.data)
        except Invalid as invalid:
            return Recorded(seq=message.seq, at_us=message.at_us, raw=message.data, error=str(invalid))
        at_us = arrival_us(message)
        data: events.Data | None = None
        found: dict[str, bytes] = {}
        error = ""
        try:
            data = events.decode_data(event)
            if self._service.blobs and data is not None:
                for blob in events.blobs_of(data):
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
            return await asyncio.to_thread(path.read_bytes)
        data: bytes = await bus_blobs.get(self._bus, self.space, blob.sha256, blob.size_bytes)
        await asyncio.to_thread(write_atomic, path, data)
        return data

    async def checkpoint(self) -> None:
        if self.dirty:
            self.dirty = False
            await self.view.checkpoint()

    async def close(self) -> None:
        await self.view.close()
        self._files.close()


class Views(Generic[S]):
    """At most `most_open` views of one service stay open; one in use is never closed."""

    def __init__(self, service: Service[S], bus: Bus, home: Home, *, most_open: int) -> None:
        self._service = service
        self._bus = bus
        self._home = home
        self._most = most_open
        self._open: OrderedDict[str, OpenView[S]] = OrderedDict()
        self._opening: dict[str, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def use(self, space: str, *, until: int) -> AsyncIterator[OpenView[S]]:
        """The view of `space` (a token) with everything below `until` applied when it is opened.

        It is rebuilt first when there is none, when it is damaged, of another epoch or of another version.
        """
        view = self._open.get(space)
        if view is None:
            async with self._opening.setdefault(space, asyncio.Lock()):
                view = self._open.get(space)
                if view is None:
                    view = await self._opened(space, until)
                    self._open[space] = view
            self._opening.pop(space, None)
        view.users += 1
        self._open.move_to_end(space)
        try:
            async with view.lock:
                yield view
        finally:
            view.users -= 1
            await self._evict()

    async def discard(self, space: str) -> None:
        """Close a view that turned out to be damaged; the next use rebuilds it."""
        view = self._open.pop(space, None)
        if view is not None:
            link = view.view.link
            await view.close()
            link.unlink(missing_ok=True)

    def is_open(self, space: str) -> bool:
        return space in self._open

    async def checkpoint(self) -> None:
        """Make everything that was folded durable against a power cut."""
        for view in list(self._open.values()):
            async with view.lock:
                await view.checkpoint()

    async def close(self) -> None:
        while self._open:
            _, view = self._open.popitem()
            await view.close()

    async def _opened(self, space: str, until: int) -> OpenView[S]:
        root = self._home.spaces / space
        link = root / "views" / f"{self._service.name}.db"
        n = generation(link)
        if n:
            try:
                view = self._made(space, root, link, n)
                try:
                    await view.view.open()
                    if await view.view.read(self._is_current):
                        await view.catch_up(until)
                        return view
                except BaseException:
                    await view.close()
                    raise
                await view.close()
                log.info("view_stale", service=self._service.name, space=space)
            except Damaged as error:
                log.warning("view_damaged", service=self._service.name, space=space, error=str(error))
                link.unlink(missing_ok=True)
        return await self._rebuilt(space, root, link, n + 1, until)

    async def _rebuilt(self, space: str, root: Path, link: Path, n: int, until: int) -> OpenView[S]:
        lock = Lock(link.with_name(f".{link.stem}.lock"))
        if not lock.take():
            raise Busy(f"{self._service.name}: process {lock.holder()} is rebuilding the view of this space")
        try:
            for leftover in link.parent.glob(f"{generation_path(link, n).name}*"):
                leftover.unlink()
            view = self._made(space, root, link, n)
            try:
                await view.view.open()
                await view.view.transaction(self._stamp)
                await view.catch_up(until)
                await view.checkpoint()
            except BaseException:
                await view.close()
                raise
            switch(link, n)
        finally:
            lock.release()
        return view

    def _made(self, space: str, root: Path, link: Path, n: int) -> OpenView[S]:
        return OpenView(self._service, self._bus, space, root, View(link, self._service.tables, n=n))

    def _is_current(self, db: Any) -> bool:
        return bool(
            read_meta(db, "version", None) == self._service.version
            and read_meta(db, "epoch", None) == self._bus.epoch
        )

    def _stamp(self, db: Any) -> None:
        write_meta(db, "version", self._service.version)
        write_meta(db, "epoch", self._bus.epoch)

    async def _evict(self) -> None:
        for space, view in list(self._open.items()):
            if len(self._open) <= self._most:
                return
            if not view.users:
                del self._open[space]
                await view.checkpoint()
                await view.close()


def _event(raw: bytes) -> events.Event:
    if b"\n" in raw or b"\r" in raw:
        raise Invalid("the event is not on one line; it was not written by a Lamina client")
    return events.decode(raw)
