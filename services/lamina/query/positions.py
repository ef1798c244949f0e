"""Where the views of a space stand, and waiting for them to move."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from lamina.bus import Bus
from lamina.errors import Closed, Invalid, Transient, Unavailable
from lamina.home import Home
from lamina.ids import SUBJECT_ROOT
from lamina.runtime.apply import read_meta
from lamina.runtime.descriptors import most_readers
from lamina.runtime.views import space_subject
from lamina.runtime.worker import touch_subject
from lamina.store import Damaged, ViewReader

T = TypeVar("T")
LOOK_AGAIN_S = 0.25
READERS = max(1, min(4, os.cpu_count() or 1))
"""Of one view, how many are read at once: further questions wait for one of them."""


class Positions:
    """Readers of views, kept open for the spaces used last, and the news of what has been applied."""

    def __init__(self, bus: Bus, home: Home) -> None:
        self._bus = bus
        self._home = home
        self._readers: OrderedDict[tuple[str, str, int], ViewReader] = OrderedDict()
        self._reading: Counter[tuple[str, str, int]] = Counter()
        self._news: dict[tuple[str, str], asyncio.Event] = {}
        self._closed = False

    async def start(self) -> Callable[[], Awaitable[None]]:
        """Begin to hear of applied batches; the result ends it."""
        subscription = await self._bus.listen(f"{SUBJECT_ROOT}.applied.>", self._on_applied)
        return subscription.close

    def _on_applied(self, subject: str, _: bytes) -> None:
        space, service = subject.split(".")[3:]
        event = self._news.pop((space, service), None)
        if event is not None:
            event.set()

    @property
    def epoch(self) -> str:
        """That of the log, whose positions these are."""
        return self._bus.epoch

    def link(self, space: str, service: str) -> Path:
        """Where the view of a service lies."""
        return self._home.spaces / space / "views" / f"{service}.db"

    async def head(self, space: str, timeout_s: float = 5.0) -> int:
        """The seq of the last event that the views of a space are to have; 0 when it has none."""
        last = await self._bus.last(space_subject(space), timeout_s=timeout_s)
        return last.seq if last is not None else 0

    def _idle(self, space: str, service: str) -> tuple[str, str, int]:
        """The reader of a view with the least to do."""
        return min(((space, service, n) for n in range(READERS)), key=lambda key: (self._reading[key], key[2]))

    def _reader(self, key: tuple[str, str, int]) -> ViewReader:
        """A reader of one view, opened at its first read; `Unavailable` after `close`."""
        if self._closed:
            raise Unavailable("the query service stops")
        if key not in self._readers:
            self._readers[key] = ViewReader(self.link(key[0], key[1]))
        self._readers.move_to_end(key)
        return self._readers[key]

    async def read(
        self, space: str, service: str, work: Callable[[sqlite3.Connection], T], *, until_s: float | None = None
    ) -> T:
        """`work` on a view. One that is missing or damaged is reported to its worker, and the error raised."""
        key = self._idle(space, service)
        reader = self._reader(key)
        self._reading[key] += 1
        try:
            try:
                result = await reader.read(work, until_s=until_s)
            except Closed:  # it was the one used longest ago until now
                reader = self._reader(key)
                result = await reader.read(work, until_s=until_s)
        except Damaged:
            await self.touch(space, service, damaged=reader.n)
            raise
        except Transient:
            await self.touch(space, service)
            raise
        finally:
            self._reading[key] -= 1
            if not self._reading[key]:
                del self._reading[key]
        await self._trim()
        return result

    async def seq(self, space: str, service: str) -> int:
        """The position of a view; 0 while there is none."""
        try:
            return await self.read(space, service, lambda db: int(read_meta(db, "applied_seq", 0)))
        except (Damaged, Transient):
            return 0

    async def touch(self, space: str, service: str, *, damaged: int | None = None) -> None:
        """Ask for the view to be brought up to the log; made anew where generation `damaged` is the one in use."""
        await self._bus.notify(touch_subject(service, space), b"" if damaged is None else b"%d" % damaged)

    async def wait(self, space: str, service: str, seq: int) -> int:
        """Return once the view is at `seq` or beyond. The caller sets the deadline by cancelling."""
        while True:
            news = self.news(space, service)
            now = await self.seq(space, service)
            if now >= seq:
                return now
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await news.wait()
            except TimeoutError:  # the news is best effort, and a space nobody writes to must be asked for
                await self.touch(space, service)

    def news(self, space: str, service: str) -> asyncio.Event:
        """Set when the worker of a view tells of something new; asked for before looking."""
        return self._news.setdefault((space, service), asyncio.Event())

    async def _trim(self) -> None:
        while len(self._readers) > most_readers():
            _, reader = self._readers.popitem(last=False)
            await reader.close()

    async def close(self) -> None:
        self._closed = True
        while self._readers:
            _, reader = self._readers.popitem()
            await reader.close()


def layer_service(name: str, installed: tuple[str, ...]) -> str:
    """The service behind a layer or service name; `Invalid` for an unknown one."""
    service = {"l0": "journal", "l1": "atoms", "l2": "scenarios", "l3": "persona"}.get(name, name)
    if service not in installed:
        raise Invalid(f"unknown layer or service {name!r}; there are: {', '.join(installed)}")
    return service
