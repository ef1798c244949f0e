"""The fold loop: reads the lanes of a worker in log order and brings every space's view up to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import structlog
from msgspec import Struct

from lamina.bus import Bus, Message, Reader
from lamina.errors import Closed, Full, LaminaError, Transient
from lamina.ids import lane, space_of
from lamina.runtime.apply import Cursor
from lamina.runtime.index import Index
from lamina.runtime.spec import Service
from lamina.runtime.views import Views, lane_subjects, space_subject
from lamina.store.driver import Damaged

S = TypeVar("S", bound=Struct)
BATCH = 500
FETCH_WAIT_S = 5.0
CHECKPOINT_EVERY_S = 5.0
CHECKPOINT_EVERY_EVENTS = 20_000
RETRY_S = 1.0
log = structlog.get_logger()


class Follower(Generic[S]):
    """Owns the reader of a worker. A space whose view cannot be written is set aside and tried again; the
    position of its lane waits for it, the other spaces do not."""

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        views: Views[S],
        index: Index,
        lanes: Sequence[int],
        moved: Callable[[str, Cursor[S]], None],
    ) -> None:
        self._service = service
        self._bus = bus
        self._views = views
        self._index = index
        self._lanes = lanes
        self._moved = moved
        self._stalled: dict[str, int] = {}  # space -> first seq that is not applied
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
        return min([seq - 1 for seq in self._stalled.values()], default=self._read_seq)

    def stop(self) -> None:
        self._stopping = True
        self._wake()

    async def run(self) -> None:
        """Follow until `stop`; on the way out everything folded is durable and the positions are written."""
        while not self._stopping:
            self._read_seq = self._written = await self._index.position(self._bus.epoch, self._lanes)
            reader = self._bus.read(lane_subjects(self._lanes), after=self._read_seq, name=self._service.name)
            self._wake = reader.wake
            epoch = self._bus.epoch
            try:
                while not self._stopping and self._bus.epoch == epoch:
                    await self._round(reader)
            finally:
                await reader.close()
        await self._checkpoint(force=True)

    async def _round(self, reader: Reader) -> None:
        wait_s = RETRY_S if self._stalled or self._read_seq != self._written else FETCH_WAIT_S
        try:
            batch = await reader.fetch(BATCH, wait_s)
        except Closed:
            self._stopping = True
            return
        except Transient as error:
            self._failed("bus_away", error)
            return
        self.pending = reader.pending
        if batch:
            await self.apply(batch)
            self._read_seq = batch[-1].seq
            self.applied += len(batch)
        if not self.pending:
            self.caught_up.set()
        if self._stalled:
            await self._retry()
        await self._checkpoint(force=not batch)

    async def apply(self, batch: Sequence[Message]) -> None:
        """Fold a batch, space by space."""
        by_space: dict[str, list[Message]] = {}
        for message in batch:
            by_space.setdefault(space_of(message.subject), []).append(message)
        await asyncio.gather(*(self._fold(space, messages) for space, messages in by_space.items()))

    async def touch(self, space: str) -> None:
        """Bring one space up to the end of the log, whether or not anything new comes for it."""
        last = await self._bus.last(space_subject(space))
        if last is not None and space not in self._stalled:
            await self._to(space, last.seq + 1)

    async def _fold(self, space: str, messages: Sequence[Message]) -> None:
        if space in self._stalled:
            return  # the retry reads it from the log, in order
        try:
            cursor = await self._fold_once(space, messages)
        except Damaged as error:
            self._failed("view_damaged", error)
            await self._views.discard(space)
            await self._to(space, messages[-1].seq + 1)
            return
        except LaminaError as error:
            self._stall(space, messages[0].seq, error)
            return
        self._moved(space, cursor)

    async def _fold_once(self, space: str, messages: Sequence[Message]) -> Cursor[S]:
        async with self._views.use(space, until=messages[0].seq) as view:
            return await view.fold(messages)

    async def _to(self, space: str, until: int) -> None:
        try:
            async with self._views.use(space, until=until) as view:
                cursor = await view.catch_up(until)
        except LaminaError as error:
            if isinstance(error, Damaged):
                await self._views.discard(space)
            self._stall(space, self._stalled.get(space, 1), error)
            return
        self._stalled.pop(space, None)
        self._moved(space, cursor)

    async def _retry(self) -> None:
        for space in list(self._stalled):
            await self._to(space, self._read_seq + 1)

    def _stall(self, space: str, seq: int, error: LaminaError) -> None:
        self._stalled.setdefault(space, seq)
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
        try:
            await self._views.checkpoint()
            await self._index.advance(self._bus.epoch, self._positions(position))
        except LaminaError as error:
            self._failed("checkpoint_failed", error)
            return
        self._written = position
        self._last_checkpoint = (time.monotonic(), self.applied)

    def _positions(self, position: int) -> dict[int, int]:
        held: dict[int, int] = {}
        for space, seq in self._stalled.items():
            held[lane(space)] = min(seq - 1, held.get(lane(space), seq - 1))
        return {n: held.get(n, self._read_seq) for n in self._lanes} if held else dict.fromkeys(self._lanes, position)
