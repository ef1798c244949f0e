"""One worker: the fold and decide loops of one service over some lanes, its seat and its heartbeat."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from msgspec import Struct

from lamina.bus import Bus
from lamina.config import load
from lamina.embedding import Embedding, shared
from lamina.errors import LaminaError
from lamina.home import Home
from lamina.ids import LANES, SUBJECT_ROOT, applied_subject, lane
from lamina.log import get_logger
from lamina.runtime.apply import MAX_ERROR_CHARS, Cursor
from lamina.runtime.decider import Decider, now_us
from lamina.runtime.descriptors import most_views
from lamina.runtime.editloop import EditLoop
from lamina.runtime.embedloop import EmbedLoop
from lamina.runtime.feed import Feed
from lamina.runtime.follower import Follower
from lamina.runtime.index import Index
from lamina.runtime.membership import HEARTBEAT_S, Heartbeat, Membership
from lamina.runtime.spec import Service
from lamina.runtime.views import Views

S = TypeVar("S", bound=Struct)
log = get_logger()
TOUCHES_AT_ONCE = 4
MAX_TOUCHED = 1_000
MAX_DIGITS = 16


def touch_subject(service: str, space: str) -> str:
    """Ask the worker of `service` to bring `space` up to the end of the log; the payload may be the number of a
    generation of its view that was found damaged."""
    return f"{SUBJECT_ROOT}.touch.{service}.{space}"


class Worker(Generic[S]):
    """Runs one service. Several workers of one service are safe: a view's lock and numbers decide.

    Without `lanes` it shares them with the other workers of the service on its home. `standby`, asked once a second,
    says whether it leaves them to others as long as there are any.
    """

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        home: Home,
        *,
        lanes: Collection[int] | None = range(LANES),
        standby: Callable[[], bool] | None = None,
        clock_us: Callable[[], int] = now_us,
        embedding: Embedding | None = None,
        feed: Feed | None = None,
        beside: int = 1,
    ) -> None:
        """`beside`: so many services of this process share what may be open at once."""
        if service.configure is not None:
            service = service.configure(load(home.config))
        self.service = service
        self._bus = bus
        self._home = home
        self._shares = lanes is None
        self._stands_by = standby
        self._membership = Membership(home, service.name)
        self._views = Views(service, bus, home, most_open=most_views(beside))
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
            *(service, bus, self._views, self._index, lanes or (), self._on_moved, self.decider.save, self._took),
            feed,
            keeps=self._shares,
        )
        self.editor: EditLoop | None = None
        if service.editing is not None:
            self.editor = EditLoop(service, service.editing, bus, self._views, home)
        self.embedder: EmbedLoop[S] | None = None
        if service.embeds:
            source = embedding or shared(load(home.config).embedding)
            self.embedder = EmbedLoop(service, bus, self._views, self._index, home, source, self._folding)

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Run until `stop`. On the way out positions are written and nothing in flight is lost."""
        await self._index.open()
        await self._membership.join(last=self._stands_by is not None, single=self.service.single)
        self._beat()
        subscription = await self._bus.listen(f"{SUBJECT_ROOT}.touch.{self.service.name}.*", self._on_touch)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = (*[self._touching] * TOUCHES_AT_ONCE, self._announcing, self._beating)
                helpers = [group.create_task(task()) for task in tasks]
                if self.service.decide is not None:
                    group.create_task(self.decider.run(self.follower.caught_up))
                if self.editor is not None:
                    helpers.append(group.create_task(self.editor.run(self.follower.caught_up)))
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
            self._membership.leave()

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
            lanes=len(follower.lanes),
            position=follower.position,
            pending=follower.pending,
            applied=follower.applied,
            made=self.decider.made + (embedder.made if embedder else 0),
            due=len(self.decider.due) + (embedder.due if embedder else 0),
            errors=follower.errors + (embedder.errors if embedder else 0),
            standby=self._standby(),
            state=self._state(),
            last_error=(follower.last_error or (embedder.last_error if embedder else ""))[:MAX_ERROR_CHARS],
        )

    def _standby(self) -> bool:
        return self._stands_by is not None and self._stands_by()

    def _state(self) -> str:
        if not self.follower.caught_up.is_set():
            return "starting"
        return "standby" if self._standby() and not self.follower.lanes else "following"

    async def _took(self, lanes: frozenset[int]) -> None:
        log.info("lanes_taken", service=self.service.name, seat=self._membership.seat, lanes=len(lanes))
        await self.decider.take(lanes)
        if self.embedder is not None:
            await self.embedder.take(lanes)

    def _on_moved(self, space: str, cursor: Cursor[S]) -> None:
        self.decider.moved(space, cursor)
        if self.embedder is not None:
            self.embedder.moved(space)
        self._moved[space] = cursor
        self._news.set()

    def _on_touch(self, subject: str, payload: bytes) -> None:
        space = subject.rsplit(".", 1)[1]
        if len(self._touched) < MAX_TOUCHED and lane(space) in self.follower.lanes:  # whoever asked asks again
            damaged = int(payload) if payload.isdigit() and len(payload) < MAX_DIGITS else None
            self._touched[space] = damaged
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
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            self._beat()

    def _beat(self) -> None:
        """Tell the others of this worker, and see which lanes are left to it."""
        self._membership.tell(self.heartbeat())
        if self._shares:
            self.follower.follow(self._membership.lanes(standby=self._standby()))
