"""The open views of one service: opened at first use, rebuilt when they are stale, closed when long unused."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

from lamina.bus import Bus
from lamina.errors import Busy, LaminaError
from lamina.home import Home, Lock
from lamina.ids import lane
from lamina.log import get_logger
from lamina.runtime.apply import read_meta, write_meta
from lamina.runtime.history import space_subject
from lamina.runtime.open_view import OpenView, lane_subjects
from lamina.runtime.spec import Service
from lamina.store.driver import Damaged
from lamina.store.view import View, generation, identity, remove_generation, switch, unused_generation

__all__ = ["OpenView", "Views", "lane_subjects", "space_subject"]

S = TypeVar("S", bound=Struct)
log = get_logger()


class Views(Generic[S]):
    """At most `most_open` views of one service stay open; one in use is never closed."""

    def __init__(self, service: Service[S], bus: Bus, home: Home, *, most_open: int) -> None:
        self._service = service
        self._bus = bus
        self._home = home
        self._most = most_open
        self._open: OrderedDict[str, OpenView[S]] = OrderedDict()
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many are open now."""
        return len(self._open)

    @contextlib.asynccontextmanager
    async def hold(self, space: str, *, until: int) -> AsyncIterator[OpenView[S]]:
        """The view of `space` (a token) with everything below `until` applied when it is opened; it stays open
        for the length of the block, but others may use it too.

        It is rebuilt first when there is none, when it is damaged, of another epoch or of another version.
        """
        view = await self._standing(space, until)
        view.users += 1
        try:
            yield view
        finally:
            view.users -= 1
            await self._evict()

    @contextlib.asynccontextmanager
    async def use(self, space: str, *, until: int) -> AsyncIterator[OpenView[S]]:
        """As `hold`, and no other task of this process uses it meanwhile."""
        while True:
            async with self.hold(space, until=until) as view, view.lock:
                if view.stands:
                    yield view
                    return

    async def discard(self, space: str, n: int | None = None) -> None:
        """Close a view that turned out to be damaged (if it is still generation `n`); the next use rebuilds it."""
        async with self._lock_of(space):
            view = self._open.get(space)
            if view is None or n not in (None, view.view.n):
                return
            del self._open[space]
            async with view.lock:
                await view.close()
            if generation(view.view.link) == view.view.n:
                view.view.link.unlink(missing_ok=True)

    def is_open(self, space: str) -> bool:
        return space in self._open

    async def checkpoint(self) -> None:
        """Make everything that was folded durable against a power cut."""
        for view in list(self._open.values()):
            async with view.lock:
                if view.stands:
                    await view.checkpoint()

    async def close_but(self, lanes: Collection[int]) -> None:
        """Close what nobody uses of the spaces of other lanes than these."""
        for space, view in list(self._open.items()):
            if lane(space) not in lanes and not view.users:
                async with self._lock_of(space):
                    await self._closed(space, view)

    async def close(self) -> None:
        views = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(view.close() for view in views))

    def _lock_of(self, space: str) -> asyncio.Lock:
        lock = self._opening.get(space)
        if lock is None:
            lock = self._opening[space] = asyncio.Lock()
        return lock

    async def _standing(self, space: str, until: int) -> OpenView[S]:
        view = self._open.get(space)
        if view is None or not view.stands:
            async with self._lock_of(space):
                view = self._open.get(space)
                if view is not None and not view.stands:
                    del self._open[space]
                    async with view.lock:
                        await view.close()
                    view = None
                if view is None:
                    view = await self._opened(space, until)
                    self._open[space] = view
        self._open.move_to_end(space)
        return view

    async def _opened(self, space: str, until: int) -> OpenView[S]:
        root = self._home.spaces / space
        link = root / "views" / f"{self._service.name}.db"
        while True:
            n = generation(link)
            view = await self._existing(space, root, link, n, until) if n else None
            if view is None:
                view = await self._rebuilt(space, root, link, n, until)
            if view is not None:
                return view

    async def _existing(self, space: str, root: Path, link: Path, n: int, until: int) -> OpenView[S] | None:
        """Generation `n`, caught up; None when it is gone, stale or damaged."""
        if identity(link) is None:
            return None
        view = self._made(space, root, link, n)
        try:
            await view.view.open()
            if await view.view.read(self._is_current):
                await view.check()
                await view.catch_up(until)
                return view
            log.info("view_stale", service=self._service.name, space=space)
        except Damaged as error:
            log.warning("view_damaged", service=self._service.name, space=space, error=str(error))
        except BaseException:
            await view.close()
            raise
        await view.close()
        return None

    async def _rebuilt(self, space: str, root: Path, link: Path, seen: int, until: int) -> OpenView[S] | None:
        """A new generation from the log; None when another process has made one since `seen`."""
        lock = Lock(link.with_name(f".{link.stem}.lock"))
        if not lock.take():
            raise Busy(f"{self._service.name}: process {lock.holder()} is rebuilding the view of this space")
        try:
            if generation(link) != seen:
                return None
            n = unused_generation(link)
            view = self._made(space, root, link, n)
            try:
                await view.view.open()
                await view.view.transaction(self._stamp)
                await view.catch_up(until)
                await view.checkpoint()
                switch(link, n)
            except BaseException:
                await view.close()
                remove_generation(link, n)
                raise
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
        if len(self._open) <= self._most:
            return
        for space, view in list(self._open.items()):
            if len(self._open) <= self._most:
                return
            if not view.users:
                async with self._lock_of(space):
                    await self._closed(space, view)

    async def _closed(self, space: str, view: OpenView[S]) -> None:
        """Close a view that nobody uses; one that cannot be made durable now stays open, and is tried again."""
        try:
            await view.checkpoint()
        except LaminaError as error:
            log.warning("view_not_durable", service=self._service.name, space=space, error=str(error))
            return
        if not view.users and self._open.get(space) is view:
            del self._open[space]
            await view.close()
