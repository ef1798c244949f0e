"""The fold loop: reads the lanes of a worker in log order and brings every space's view up to it.

Its lanes may change at any time. It then writes down how far it came with those it had, takes the new ones from where
whoever had them wrote that he came, and reads on from the lowest; what it has folded of the others is passed over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from lamina.bus import Bus, Message, Reader
from lamina.errors import Closed, Conflict, Full, Invalid, LaminaError, Transient
from lamina.ids import LANES, SUBJECT_ROOT, lane, untoken
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
STALE_EVENTS = 4_096
"""A lane whose position is so far behind another's is asked for its next event, which may be far behind it."""
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
        lanes: Collection[int],
        moved: Callable[[str, Cursor[S]], None],
        before_advance: Callable[[], Awaitable[None]],
        took: Callable[[frozenset[int]], Awaitable[None]],
        feed: Feed | None = None,
        *,
        keeps: bool = True,
    ) -> None:
        """`took` is told which lanes are followed from now on. `keeps`: lanes that another has taken over, although
        they are ours, are taken back."""
        self._service = service
        self._bus = bus
        self._feed = feed
        self._most = BATCH if service.urgent else LATE_BATCH
        self._views = views
        self._index = index
        self.lanes: frozenset[int] = frozenset()
        self._wanted = frozenset(lanes)
        self._took = took
        self._keeps = keeps
        self._retake = False
        self._floor: dict[int, int] = {}  # up to where lanes were folded when they were taken
        self._idle = asyncio.Event()
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
        self._idle.set()
        self._wake()

    def follow(self, lanes: frozenset[int]) -> None:
        """Follow these lanes in place of those so far, as soon as what is being folded is folded."""
        if lanes != self._wanted:
            self._wanted = lanes
            self._idle.set()
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
        await self._take(epoch)
        if not self.lanes:
            self.caught_up.set()
            await self._idle.wait()
            return
        reader = self._reader()
        self._wake = reader.wake
        try:
            while not self._stopping and self._bus.epoch == epoch and self._wanted == self.lanes and not self._retake:
                await self._round(reader)
        finally:
            self._wake = lambda: None
            await reader.close()
        if self._bus.epoch == epoch:
            await self._checkpoint(force=True)  # whoever takes a lane goes on from here
        elif not self._stopping:
            log.warning("new_epoch", service=self._service.name, epoch=self._bus.epoch)
            await self._end_retries()
            self._stalled.clear()
            await self._views.close()

    async def _take(self, epoch: str) -> None:
        """Go over to the lanes that are wanted, each from where it was left."""
        self._idle.clear()
        self._retake = False
        lost, self.lanes = self.lanes - self._wanted, self._wanted
        if lost:
            await self._end_retries()
            self._stalled = {space: one for space, one in self._stalled.items() if lane(space) in self.lanes}
            await self._views.close_but(self.lanes)
        await self._index.own(self.lanes)
        self._floor = await self._starts(epoch)
        self._read_seq = min(self._floor.values(), default=0)
        self._written = -1
        await self._took(self.lanes)

    async def _starts(self, epoch: str) -> dict[int, int]:
        """How far each lane is folded. One with a position of long ago may just have been quiet: it is asked."""
        starts = await self._index.positions(epoch, self.lanes)
        high = max(starts.values(), default=0)
        quiet = [n for n, seq in starts.items() if high - seq > STALE_EVENTS]
        found = await asyncio.gather(
            *(self._bus.next(f"{SUBJECT_ROOT}.ev.{n}.>", starts[n]) for n in quiet), return_exceptions=True
        )
        for n, first in zip(quiet, found, strict=True):
            if isinstance(first, Message):
                starts[n] = max(starts[n], min(high, first.seq - 1))
            elif first is None:
                starts[n] = high
            elif not isinstance(first, LaminaError):
                raise first
        return starts

    def _reader(self) -> Reader:
        after, name = self._read_seq, self._service.name
        if self._feed is not None:
            return self._feed.read(after=after, name=name, urgent=self._service.urgent)
        return self._bus.read(lane_subjects(sorted(self.lanes)), after=after, name=name)

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
            self.applied += await self.apply(batch)
            self._read_seq = batch[-1].seq
        if not self.pending:
            self.caught_up.set()
        self._retry()
        await self._checkpoint(force=not batch)

    async def apply(self, batch: Sequence[Message]) -> int:
        """Fold what of a batch is on our lanes and was not folded when they were taken, space by space; how much."""
        by_space: dict[str, list[Message]] = {}
        for message in batch:
            space = self._space(message)
            if space is not None:
                by_space.setdefault(space, []).append(message)
        if len(self.lanes) < LANES or self._read_seq < max(self._floor.values(), default=0):
            by_space = {space: kept for space, all in by_space.items() if (kept := self._ours(space, all))}
        await asyncio.gather(*(self._fold(space, messages) for space, messages in by_space.items()))
        return sum(map(len, by_space.values()))

    def _ours(self, space: str, messages: list[Message]) -> list[Message]:
        n = lane(space)
        if n not in self.lanes:
            return []
        floor = self._floor.get(n, 0)
        return [message for message in messages if message.seq > floor] if messages[0].seq <= floor else messages

    async def touch(self, space: str, damaged: int | None = None) -> None:
        """Bring one space up to the end of the log, whether or not anything new comes for it; anew where a
        reader found generation `damaged` of its view damaged. `Invalid` when there can be no such space."""
        untoken(space)
        if lane(space) not in self.lanes:
            return  # its owner was asked as well
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
            lost = await self._index.advance(self._epoch, positions)
        except LaminaError as error:
            self._failed("checkpoint_failed", error)
            return
        self._retake = self._keeps and bool(lost)
        self._written = position
        self._last_checkpoint = (time.monotonic(), self.applied)

    def _positions(self, position: int) -> dict[int, int]:
        held: dict[int, int] = {}
        for space, stalled in self._stalled.items():
            n = lane(space)
            held[n] = min(stalled.first - 1, held.get(n, stalled.first - 1))
        return {n: held.get(n, max(self._read_seq, self._floor.get(n, 0))) for n in self.lanes}
