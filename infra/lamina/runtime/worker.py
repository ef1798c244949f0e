"""One worker: the fold and decide loops of one service over some lanes, with its heartbeat file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from lamina.bus import Bus
from lamina.config import load
from lamina.embedding import Embedding, shared
from lamina.errors import LaminaError
from lamina.home import Home, alive
from lamina.ids import LANES, SUBJECT_ROOT, applied_subject
from lamina.runtime.apply import MAX_ERROR_CHARS, Cursor
from lamina.runtime.decider import Decider, now_us
from lamina.runtime.embedloop import EmbedLoop
from lamina.runtime.feed import Feed
from lamina.runtime.follower import Follower
from lamina.runtime.index import Index
from lamina.runtime.spec import Service
from lamina.runtime.views import Views
from lamina.store.files import translated_os

S = TypeVar("S", bound=Struct)
HEARTBEAT_S = 1.0
TOUCHES_AT_ONCE = 4
MAX_TOUCHED = 1_000
MAX_DIGITS = 16
FDS_PER_VIEW = 6
BEAT_BYTES = 2_048


class Heartbeat(Struct, frozen=True, kw_only=True):
    """What a worker says of itself once a second, in `run/workers/<service>-<pid>.json`."""

    service: str
    pid: int
    at_us: int
    lanes: int
    position: int
    pending: int
    applied: int
    made: int
    due: int
    errors: int
    last_error: str


def most_open_views() -> int:
    """How many views may be open at once: a quarter of the file descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(8, min(512, soft // 4 // FDS_PER_VIEW))


def touch_subject(service: str, space: str) -> str:
    """Ask the worker of `service` to bring `space` up to the end of the log; the payload may be the number of a
    generation of its view that was found damaged."""
    return f"{SUBJECT_ROOT}.touch.{service}.{space}"


def heartbeats(home: Home) -> list[Heartbeat]:
    """The workers of this home that are alive, by their files."""
    found = []
    for path in sorted((home.run / "workers").glob("*.json")):
        try:
            beat = msgspec.json.decode(path.read_bytes(), type=Heartbeat)
        except (FileNotFoundError, msgspec.MsgspecError):
            continue  # it stopped, or stops, just now
        if alive(beat.pid):
            found.append(beat)
        else:
            path.unlink(missing_ok=True)
    return found


class Worker(Generic[S]):
    """Runs one service. Several workers of one service are safe: a view's lock and numbers decide."""

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        home: Home,
        *,
        lanes: Sequence[int] = range(LANES),
        clock_us: Callable[[], int] = now_us,
        embedding: Embedding | None = None,
        feed: Feed | None = None,
    ) -> None:
        if service.configure is not None:
            service = service.configure(load(home.config))
        self.service = service
        self._bus = bus
        self._home = home
        self._lanes = tuple(lanes)
        self._views = Views(service, bus, home, most_open=most_open_views())
        self._index = Index(home.run / f"{service.name}.db")
        self._touched: dict[str, int | None] = {}
        self._touch = asyncio.Event()
        self._moved: dict[str, Cursor[S]] = {}
        self._news = asyncio.Event()
        self._feed = feed
        self.decider = Decider(
            service, bus, self._views, self._index, clock_us=clock_us, stands_back=self._others_urgent
        )
        self.follower = Follower(
            service, bus, self._views, self._index, self._lanes, self._on_moved, self.decider.save, feed
        )
        self.embedder: EmbedLoop[S] | None = None
        if service.embeds:
            source = embedding or shared(load(home.config).embedding)
            self.embedder = EmbedLoop(service, bus, self._views, self._index, home, source, self._folding)

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Run until `stop`. On the way out positions are written and nothing in flight is lost."""
        await self._index.open()
        subscription = await self._bus.listen(f"{SUBJECT_ROOT}.touch.{self.service.name}.*", self._on_touch)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = (*[self._touching] * TOUCHES_AT_ONCE, self._announcing, self._beating)
                helpers = [group.create_task(task()) for task in tasks]
                if self.service.decide is not None:
                    group.create_task(self.decider.run(self.follower.caught_up))
                if self.embedder is not None:
                    group.create_task(self.embedder.run(self.follower.caught_up))
                if ready is not None:
                    ready.set()
                await self.follower.run()
                self._stop_loops()
                for helper in helpers:
                    helper.cancel()
        finally:
            with contextlib.suppress(LaminaError):
                await subscription.close()
            await self._views.close()
            await self._index.close()
            self._beat_file().unlink(missing_ok=True)

    def stop(self) -> None:
        self._stop_loops()
        self.follower.caught_up.set()
        self.follower.stop()

    def _folding(self) -> bool:
        return self.follower.pending > 0 or self._others_urgent()

    def _others_urgent(self) -> bool:
        return self._feed is not None and self._feed.is_busy

    def _stop_loops(self) -> None:
        self.decider.stop()
        if self.embedder is not None:
            self.embedder.stop()

    def heartbeat(self) -> Heartbeat:
        follower, embedder = self.follower, self.embedder
        return Heartbeat(
            service=self.service.name,
            pid=os.getpid(),
            at_us=time.time_ns() // 1000,
            lanes=len(self._lanes),
            position=follower.position,
            pending=follower.pending,
            applied=follower.applied,
            made=self.decider.made + (embedder.made if embedder else 0),
            due=len(self.decider.due) + (embedder.due if embedder else 0),
            errors=follower.errors + (embedder.errors if embedder else 0),
            last_error=(follower.last_error or (embedder.last_error if embedder else ""))[:MAX_ERROR_CHARS],
        )

    def _on_moved(self, space: str, cursor: Cursor[S]) -> None:
        self.decider.moved(space, cursor)
        if self.embedder is not None:
            self.embedder.moved(space)
        self._moved[space] = cursor
        self._news.set()

    def _on_touch(self, subject: str, payload: bytes) -> None:
        if len(self._touched) < MAX_TOUCHED:  # whoever asked asks again
            damaged = int(payload) if payload.isdigit() and len(payload) < MAX_DIGITS else None
            self._touched[subject.rsplit(".", 1)[1]] = damaged
            self._touch.set()

    async def _touching(self) -> None:
        while True:
            await self._touch.wait()
            self._touch.clear()
            while self._touched:
                space, damaged = self._touched.popitem()
                with contextlib.suppress(LaminaError):  # said by the follower; whoever asked asks again
                    await self.follower.touch(space, damaged)

    async def _announcing(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            moved, self._moved = self._moved, {}
            for space, cursor in moved.items():
                with contextlib.suppress(LaminaError):  # best effort: waiters look again by themselves
                    await self._bus.notify(applied_subject(space, self.service.name), str(cursor.seq).encode())

    async def _beating(self) -> None:
        """Write the heartbeat in place: no name is made in a home that somebody is removing."""
        path = self._beat_file()
        with translated_os(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb")
        with file:
            while True:
                beat = msgspec.json.encode(self.heartbeat())
                with contextlib.suppress(OSError):  # a full disk shows in status by the heartbeat's age
                    os.pwrite(file.fileno(), beat.ljust(BEAT_BYTES), 0)
                await asyncio.sleep(HEARTBEAT_S)

    def _beat_file(self) -> Path:
        return self._home.run / "workers" / f"{self.service.name}-{os.getpid()}.json"
