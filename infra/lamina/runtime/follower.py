"""The fold loop: reads the lanes of a worker in log order and brings every space's view up to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from lamina.bus import Bus, Message, Reader
from lamina.errors import Closed, Conflict, Full, Invalid, LaminaError, Transient
from lamina.ids import lane, untoken
from lamina.log import get_logger
from lamina.runtime.apply import Cursor
from lamina.runtime.feed import Feed
from lamina.runtime.index import Index
from lamina.runtime.reading import Read, space_of
from lamina.runtime.spec import Service
from lamina.runtime.views import Views, lane_subjects, space_subject
from lamina.store.driver import Damaged

S = TypeVar("S", bound=Struct)
BATCH = 500
LATE_BATCH = 4_000
"""A service that nobody waits for folds more at once, which costs less."""
FETCH_WAIT_S = 5.0
FIRST_WAIT_S = 0.2
CHECKPOINT_EVERY_S = 5.0
CHECKPOINT_EVERY_EVENTS = 20_000
RETRY_S = 1.0
SPACES_AT_ONCE = 8
"""Of how many spaces views are folded at the same time: each needs file descriptors, a thread and a disk."""
log = get_logger()


class _Stalled:
    """A space that is set aside: everything from `first` on is not applied, and it is needed up to `last`."""

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


class Follower(Generic[S]):
    """Owns the reader of a worker. A space whose view cannot be written is set aside and tried again; the
    position of its lane waits for it, the other spaces do not. A `feed` of the same lanes is read in place of the
    log."""

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        views: Views[S],
        index: Index,
        lanes: Sequence[int],
        moved: Callable[[str, Cursor[S]], None],
        before_advance: Callable[[], Awaitable[None]],
        feed: Feed | None = None,
    ) -> None:
        self._service = service
        self._bus = bus
        self._feed = feed
        self._most = BATCH if service.urgent else LATE_BATCH
        self._views = views
        self._index = index
        self._lanes = lanes
        self._moved = moved
        self._before_advance = before_advance
        self._stalled: dict[str, _Stalled] = {}
        self._retries: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(SPACES_AT_ONCE)
        self._epoch = ""
        self._written = 0
        self._read_seq = 0
        self._last_checkpoint = (0.0, 0)
        self._stopping = False
        self._wake: Callable[[], None] = lambda: None
        self.caught_up = asyncio.Event()
        self.applied = 0
        self.errors = 0
        self.last_error = ""
        self.pending = 0

    @property
    def position(self) -> int:
        """Everything on these lanes up to here is in the views."""
        return min([stalled.first - 1 for stalled in self._stalled.values()], default=self._read_seq)

    def stop(self) -> None:
        self._stopping = True
        self._wake()

    async def run(self) -> None:
        """Follow until `stop`; on the way out everything folded is durable and the positions are written."""
        try:
            while not self._stopping:
                await self._follow()
        finally:
            await self._end_retries()
        await self._checkpoint(force=True)

    async def _follow(self) -> None:
        """Read on from the positions, until `stop` or until the log begins a new epoch."""
        epoch = self._epoch = self._bus.epoch
        self._read_seq = self._written = await self._index.position(epoch, self._lanes)
        reader = self._reader()
        self._wake = reader.wake
        try:
            while not self._stopping and self._bus.epoch == epoch:
                await self._round(reader)
        finally:
            await reader.close()
        if not self._stopping:
            log.warning("new_epoch", service=self._service.name, epoch=self._bus.epoch)
            await self._end_retries()
            self._stalled.clear()
            await self._views.close()

    def _reader(self) -> Reader:
        subjects, after, name = lane_subjects(self._lanes), self._read_seq, self._service.name
        if self._feed is not None and self._feed.subjects == tuple(subjects):
            return self._feed.read(after=after, name=name, urgent=self._service.urgent)
        return self._bus.read(subjects, after=after, name=name)

    async def _round(self, reader: Reader) -> None:
        wait_s = RETRY_S if self._stalled or self._read_seq != self._written else FETCH_WAIT_S
        if not self.caught_up.is_set():  # an idle log has nothing to wait for
            wait_s = FIRST_WAIT_S
        try:
            batch = await reader.fetch(self._most, wait_s)
        except Closed:
            self._stopping = True
            return
        except (Transient, Conflict) as error:  # a conflict is a new epoch, which the caller sees
            self._failed("bus_away", error)
            return
        self.pending = reader.pending
        if batch:
            await self.apply(batch)
            self._read_seq = batch[-1].seq
            self.applied += len(batch)
        if not self.pending:
            self.caught_up.set()
        self._retry()
        await self._checkpoint(force=not batch)

    async def apply(self, batch: Sequence[Message]) -> None:
        """Fold a batch, space by space."""
        by_space: dict[str, list[Message]] = {}
        for message in batch:
            space = self._space(message)
            if space is not None:
                by_space.setdefault(space, []).append(message)
        await asyncio.gather(*(self._fold(space, messages) for space, messages in by_space.items()))

    async def touch(self, space: str, damaged: int | None = None) -> None:
        """Bring one space up to the end of the log, whether or not anything new comes for it; anew where a
        reader found generation `damaged` of its view damaged. `Invalid` when there can be no such space."""
        untoken(space)
        last = await self._bus.last(space_subject(space))
        if last is not None and space not in self._stalled:
            if damaged is not None:
                await self._views.discard(space, damaged)
            await self._to(space, last.seq)

    def _space(self, message: Message) -> str | None:
        """The space of a message; None, and an error to be seen, when its subject was not made by Lamina."""
        if isinstance(message, Read):
            return message.space
        try:
            return space_of(message)
        except Invalid as error:
            self._failed("foreign_subject", error)
            return None

    async def _fold(self, space: str, messages: Sequence[Message]) -> None:
        first, last = messages[0].seq, messages[-1].seq
        async with self._slots:
            stalled = self._stalled.get(space)
            if stalled is not None:
                stalled.last = last  # the retry reads it from the log, in order
                return
            try:
                async with self._views.use(space, until=first) as view:
                    cursor = await view.fold(messages)
            except Damaged as error:
                self._failed("view_damaged", error)
                await self._views.discard(space)
                await self._to(space, last)
                return
            except LaminaError as error:
                self._stall(space, first, last, error)
                return
        self._moved(space, cursor)

    async def _to(self, space: str, last: int) -> None:
        """Bring a space up to `last` from wherever its view stands; set it aside where that fails."""
        try:
            async with self._views.use(space, until=last + 1) as view:
                cursor = await view.catch_up(last + 1)
        except LaminaError as error:
            if isinstance(error, Damaged):
                await self._views.discard(space)
            self._stall(space, 1, last, error)
            return
        stalled = self._stalled.get(space)
        if stalled is not None and stalled.last <= last:
            del self._stalled[space]
        self._moved(space, cursor)

    def _retry(self) -> None:
        """Try spaces that were set aside again, beside the loop: a view that is locked holds nobody else up."""
        for space, stalled in self._stalled.items():
            if space not in self._retries:
                self._retries[space] = asyncio.create_task(self._retry_one(space, stalled))

    async def _retry_one(self, space: str, stalled: _Stalled) -> None:
        try:
            await asyncio.sleep(RETRY_S)
            async with self._slots:
                await self._to(space, stalled.last)
        finally:
            del self._retries[space]

    async def _end_retries(self) -> None:
        retries = list(self._retries.values())
        for task in retries:
            task.cancel()
        await asyncio.gather(*retries, return_exceptions=True)
        self._retries.clear()

    def _stall(self, space: str, first: int, last: int, error: LaminaError) -> None:
        stalled = self._stalled.setdefault(space, _Stalled(first, last))
        stalled.last = max(stalled.last, last)
        self._failed("space_stalled", error, space=space, full=isinstance(error, Full))

    def _failed(self, event: str, error: LaminaError, **more: object) -> None:
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {error}"
        log.warning(event, service=self._service.name, error=self.last_error, **more)

    async def _checkpoint(self, *, force: bool) -> None:
        at, seq = self._last_checkpoint
        position = self.position
        due = time.monotonic() - at > CHECKPOINT_EVERY_S or self.applied - seq > CHECKPOINT_EVERY_EVENTS
        if position <= self._written or not (due or force):
            return
        positions = self._positions(position)
        try:
            await self._views.checkpoint()
            await self._before_advance()
            await self._index.advance(self._epoch, positions)
        except LaminaError as error:
            self._failed("checkpoint_failed", error)
            return
        self._written = position
        self._last_checkpoint = (time.monotonic(), self.applied)

    def _positions(self, position: int) -> dict[int, int]:
        held: dict[int, int] = {}
        for space, stalled in self._stalled.items():
            n = lane(space)
            held[n] = min(stalled.first - 1, held.get(n, stalled.first - 1))
        return {n: held.get(n, self._read_seq) for n in self._lanes} if held else dict.fromkeys(self._lanes, position)
