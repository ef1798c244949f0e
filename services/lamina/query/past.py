"""The memory of a space as it was known at a position or a moment: its views folded beside the live ones.

They are made when they are asked for, kept while they are used, a few at a time, and thrown away.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from lamina.bus import Bus
from lamina.embedding import Embedding
from lamina.errors import Conflict, LaminaError, Unavailable
from lamina.home import Home
from lamina.query.known import Known
from lamina.query.positions import Positions
from lamina.query.vectors import VectorLeg
from lamina.records import AsOf
from lamina.requests import PastIs
from lamina.runtime import reading
from lamina.runtime.history import history
from lamina.runtime.pasts import pasts_folder, sweep
from lamina.runtime.registry import fold_services
from lamina.runtime.scratch import ScratchView, scratch
from lamina.store.files import translated_os
from lamina.store.view import switch
from lamina.times import micros

MOST_PASTS = 8
MOST_BYTES = 2 << 30
MATRIX_BYTES = 64 << 20
BATCH = 250


class PastPositions(Positions):
    """Readers of the views in one folder, which stand still."""

    def __init__(self, bus: Bus, home: Home, folder: Path, past: Past) -> None:
        super().__init__(bus, home)
        self._folder = folder
        self._past = past

    def link(self, space: str, service: str) -> Path:
        return self._folder / f"{service}.db"

    async def head(self, space: str, timeout_s: float = 5.0) -> int:
        return self._past.seq

    async def touch(self, space: str, service: str, *, damaged: int | None = None) -> None:
        """Nobody works on them; one that is damaged is not used again."""
        self._past.broken = self._past.broken or damaged is not None

    async def wait(self, space: str, service: str, seq: int) -> int:
        return await self.seq(space, service)


class Past:
    """The views of one space at one moment. Of a position all events up to it; of a time those known by then."""

    def __init__(
        self,
        bus: Bus,
        home: Home,
        space: str,
        as_of: AsOf,
        folder: Path,
        embedding: Embedding,
        turn: asyncio.Lock,
    ) -> None:
        self._bus = bus
        self._root = home.spaces / space
        self._as_of = as_of
        self._folder = folder
        self._turn = turn
        self._known = Known()
        self._until_us = micros(as_of.time) if as_of.time is not None else None
        self._looked: dict[str, int] = {}  # service -> the seq up to which it has seen the log
        self._task: asyncio.Task[None] | None = None
        self._at = 0
        self._end = 0
        self.positions = PastPositions(bus, home, folder, self)
        self.vectors = VectorLeg(home, self.positions, embedding, budget_bytes=MATRIX_BYTES)
        self.epoch = bus.epoch
        self.seq = 0
        self.users = 0
        self.broken = False
        folder.mkdir(parents=True, mode=0o700)

    @property
    def stands(self) -> bool:
        """May it be used on? Not once its folder was removed, as by forgetting, or the log began a new epoch."""
        return not self.broken and self.epoch == self._bus.epoch and self._folder.is_dir()

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self._folder.glob("*.db*") if not path.is_symlink())

    def progress(self, services: Sequence[str]) -> PastIs:
        """How far these views are; made only once `reach` was asked for them."""
        ready = self._task is None and all(name in self._looked for name in services)
        return PastIs(ready=ready, at=self._at, end=self._end)

    async def reach(self, services: Sequence[str], head: int, wait_s: float) -> None:
        """Have the views of these services stand where they should, with what came into the log up to `head`;
        `Unavailable` where that takes longer than `wait_s`: the work goes on."""
        end = head if self._as_of.seq is None else min(head, self._as_of.seq)
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while lacking := [name for name in services if self._looked.get(name, -1) < end]:
            if self._task is None:
                self._task = asyncio.create_task(self._made(lacking, end), name="lamina-past")
                self._task.add_done_callback(_looked_at)
            task = self._task
            done, _ = await asyncio.wait({task}, timeout=max(0.0, until_s - loop.time()))
            if not done:
                part = f"at event {self._at:,} of {self._end:,} of the log" if self._end else "begun"
                raise Unavailable(f"the memory {told(self._as_of)} is being made: {part}")
            await task

    async def _made(self, services: Sequence[str], end: int) -> None:
        try:
            async with self._turn:
                for after in sorted({self._looked.get(name, 0) for name in services}):
                    names = [name for name in services if self._looked.get(name, 0) == after]
                    self.seq = max(self.seq, await self._fold(names, after, end))
                    self._looked |= dict.fromkeys(names, end)
        finally:
            self._task = None

    async def _fold(self, names: Sequence[str], after: int, end: int) -> int:
        """Fold what lies behind `after` up to `end` into these views; the seq of the last event that they took."""
        self._at, self._end = after, end
        last = 0
        async with contextlib.AsyncExitStack() as stack:
            views = [await stack.enter_async_context(self._view(name)) for name in names]
            parts = history(self._bus, self._root, after=after, until=end + 1, name="past", batch=BATCH)
            async for messages in await stack.enter_async_context(contextlib.aclosing(parts)):
                seen = [reading.read(one, self._root.name) for one in messages]
                if self._until_us is not None:
                    seen = [kept for one in seen if (kept := self._known.at(one, self._until_us)) is not None]
                for view in views:
                    last = max(last, (await view.fold(seen)).seq)
                self._at = messages[-1].seq
        with translated_os(self._folder):
            for name in names:
                switch(self.positions.link(self._root.name, name), 1)
        return last

    def _view(self, name: str) -> contextlib.AbstractAsyncContextManager[ScratchView]:
        return scratch(fold_services()[name], self._bus, self._root, self._folder)

    async def close(self) -> None:
        """End what is being made and remove what was."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self.positions.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


class Pasts:
    """Of one query service: at most so many at once, and so many bytes; the one used longest ago goes first."""

    def __init__(self, bus: Bus, home: Home, embedding: Embedding) -> None:
        self._bus = bus
        self._home = home
        self._embedding = embedding
        self._pasts: OrderedDict[tuple[str, AsOf], Past] = OrderedDict()
        self._made = 0
        self._turn = asyncio.Lock()  # one is made at a time: whoever recalls of today comes first

    async def start(self) -> None:
        await asyncio.to_thread(sweep, self._home)

    @contextlib.asynccontextmanager
    async def hold(
        self, space: str, as_of: AsOf, services: Sequence[str], head: int, *, wait_s: float
    ) -> AsyncIterator[Past]:
        """The memory of `space` (a token) as of then, with the views of these services, for the length of the block.

        `Unavailable` where they are not made within `wait_s`; they are made on, and asking again finds them.
        """
        await self._check(as_of)
        past = await self._one(space, as_of)
        past.users += 1
        try:
            await past.reach(services, head, wait_s)
            yield past
        finally:
            past.users -= 1
            await self._evict()

    async def progress(self, space: str, as_of: AsOf, services: Sequence[str], head: int) -> PastIs:
        """Begin to make it, or go on, and say how far it is."""
        try:
            async with self.hold(space, as_of, services, head, wait_s=0.05) as past:
                return past.progress(services)
        except Unavailable:
            known = self._pasts.get((space, as_of))
            if known is None:
                raise
            return known.progress(services)

    async def _check(self, as_of: AsOf) -> None:
        """`Conflict` for a position that is not one of the log as it is."""
        if as_of.epoch and as_of.epoch != self._bus.epoch:
            raise Conflict(
                f"position {as_of.seq} is of epoch {as_of.epoch}, and the log is of {self._bus.epoch} since it was "
                "filled again; give a time instead"
            )
        last = (await self._bus.info()).last_seq if as_of.seq is not None else 0
        if as_of.seq is not None and as_of.seq > last:
            raise Conflict(f"the log ends at {last}; {as_of.seq} is still to come, or of another epoch: give a time")

    async def _one(self, space: str, as_of: AsOf) -> Past:
        key = (space, as_of)
        past = self._pasts.get(key)
        if past is not None and not past.stands and not past.users:
            del self._pasts[key]
            await past.close()
            past = None
        if past is None:
            self._made += 1
            folder = pasts_folder(self._home) / space / str(self._made)
            past = Past(self._bus, self._home, space, as_of, folder, self._embedding, self._turn)
            self._pasts[key] = past
        self._pasts.move_to_end(key)
        return past

    async def _evict(self) -> None:
        sizes = {key: past.bytes for key, past in self._pasts.items()}
        for key, past in list(self._pasts.items()):
            if len(self._pasts) == 1 or (len(self._pasts) <= MOST_PASTS and sum(sizes.values()) <= MOST_BYTES):
                return
            if not past.users and self._pasts.get(key) is past:
                del self._pasts[key], sizes[key]
                await past.close()

    async def close(self) -> None:
        while self._pasts:
            _, past = self._pasts.popitem()
            with contextlib.suppress(LaminaError):
                await past.close()


def _looked_at(task: asyncio.Task[None]) -> None:
    """Nobody need have waited for how it ended: whoever asks next tries again, and is told."""
    if not task.cancelled():
        task.exception()


def told(as_of: AsOf) -> str:
    """The moment in words."""
    return f"as of event {as_of.seq}" if as_of.time is None else f"as of {as_of.time.isoformat()}"
