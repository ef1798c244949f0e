"""The embed loop: gives every text that a view names its vector, newest first, a batch of each space in turn.

Folding goes first, since a keyword is waited for and a vector is not; but never for longer than `PATIENCE_S`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct

from lamina.bus import Bus
from lamina.embedding import Embedding
from lamina.errors import LaminaError, Unavailable
from lamina.home import Home
from lamina.ids import applied_subject, lane
from lamina.log import get_logger
from lamina.runtime.apply import erased_seq
from lamina.runtime.embedcache import EmbedCache, cache_path, removed
from lamina.runtime.embedstate import MOST_WHY_CHARS, EmbedState, Teller
from lamina.runtime.embedwork import Work, page
from lamina.runtime.index import Index
from lamina.runtime.spec import Service
from lamina.runtime.views import Views, space_subject
from lamina.store.driver import Damaged

S = TypeVar("S", bound=Struct)
SPACE_PAUSE_S = 5.0
FOLDING_LOOK_S = 0.2
PATIENCE_S = 1.0
"""Under a load that never ends one batch is made after each such wait."""
LATE = 0.2
"""How much the last batch counts in the rate that is told."""
log = get_logger()


class EmbedLoop(Generic[S]):
    """Of one worker. Two workers of a space cost model time, nothing else: the first vector of a text stays."""

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        views: Views[S],
        index: Index,
        home: Home,
        embedding: Embedding,
        folding: Callable[[], bool] = lambda: False,
        *,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._service = service
        self._bus = bus
        self._views = views
        self._index = index
        self._home = home
        self.embedding = embedding
        self._folding = folding
        self._patience_s = patience_s
        self._held_since: float | None = None
        self._batch_at: float | None = None
        self._per_second = 0.0
        self._teller = Teller(home, service.name)
        self._work: dict[str, Work] = {}
        self._dirty: OrderedDict[str, float] = OrderedDict()  # space -> not before
        self._news: set[str] = set()
        self._marked: set[str] = set()
        self._lanes: frozenset[int] = frozenset()
        self._changed = asyncio.Event()
        self._stopping = False
        self._identity = ""
        self.made = 0
        self.errors = 0
        self.last_error = ""

    @property
    def due(self) -> int:
        """About how many texts wait for their vector."""
        return sum(self._work[space].left if space in self._work else 1 for space in self._dirty)

    def moved(self, space: str) -> None:
        """The view of `space` moved on: there may be new texts."""
        if not self.embedding.off:
            self._news.add(space)
            self._dirty.setdefault(space, 0.0)
            self._changed.set()

    async def take(self, lanes: frozenset[int]) -> None:
        """Embed the spaces of these lanes from now on. What waits in those that are new stands in the index."""
        gained, self._lanes = lanes - self._lanes, lanes
        for space in [space for space in self._dirty if lane(space) not in lanes]:
            del self._dirty[space]
            self._work.pop(space, None)
        self._marked = {space for space in self._marked if lane(space) in lanes}
        if gained and not self.embedding.off:
            for space in await self._index.due():
                if lane(space) in gained:
                    self._dirty.setdefault(space, 0.0)
                    self._marked.add(space)
        self._changed.set()

    def stop(self) -> None:
        self._stopping = True
        self._changed.set()

    async def run(self, caught_up: asyncio.Event) -> None:
        """Embed until `stop`, from the moment the views have seen the end of the log."""
        if self.embedding.off:
            return
        await caught_up.wait()
        self._teller.open()
        try:
            while not self._stopping:
                self._changed.clear()
                ready = self._next()
                self._teller.say(self.state())
                if ready is None or self.embedding.why:
                    self._batch_at = None
                    await self._pause()
                elif self._held():
                    await asyncio.sleep(FOLDING_LOOK_S)
                else:
                    await self._turn(ready)
        finally:
            self._teller.close()

    def state(self) -> EmbedState:
        """What the loop does now."""
        why = self.embedding.why
        waiting = self.due
        name = "embedding" if self._dirty else "idle"
        if why or (self._dirty and self._next() is None):
            name = "put aside"
        if name == "embedding" and self._held_since is not None:
            name = "folding first"
        return EmbedState(
            pid=os.getpid(),
            at_us=time.time_ns() // 1000,
            state=name,
            model=self._identity,
            why=(why or (self.last_error if name == "put aside" else ""))[:MOST_WHY_CHARS],
            retry_in_s=round(self.embedding.passages_in_s, 1),
            embedded=self.made,
            waiting=waiting,
            spaces=len(self._dirty),
            per_second=round(self._per_second, 1),
            eta_s=round(waiting / self._per_second, 1) if self._per_second and not why else None,
        )

    def _held(self) -> bool:
        """Does folding go first now?"""
        if not self._folding():
            self._held_since = None
            return False
        now = time.monotonic()
        if self._held_since is None:
            self._held_since = now
        if now - self._held_since < self._patience_s:
            return True
        self._held_since = now
        return False

    def _next(self) -> str | None:
        now = time.monotonic()
        return next((space for space, not_before in self._dirty.items() if not_before <= now), None)

    async def _pause(self) -> None:
        """Until something changes, or the source or a space may be tried again."""
        waits = [max(0.01, at - time.monotonic()) for at in self._dirty.values()]
        timeout = max(min(waits), self.embedding.retry_in_s) if waits else None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._changed.wait()
                if self.embedding.why:  # new texts do not make the source answer sooner
                    await asyncio.sleep(self.embedding.retry_in_s)

    async def _turn(self, space: str) -> None:
        """One batch of one space; then it is the next one's turn."""
        self._dirty.move_to_end(space)
        try:
            if space not in self._marked:
                await self._index.set_due({space: 0})
                self._marked.add(space)
            self._news.discard(space)
            if await self._batch(space) or space in self._news:
                return
            self._dirty.pop(space, None)
            await self._index.set_due({space: None})
            self._marked.discard(space)
            await self._bus.notify(applied_subject(space, self._service.name), b"")
        except Unavailable as error:
            self._failed(space, error, self.embedding.passages_in_s or SPACE_PAUSE_S)
        except LaminaError as error:
            self._failed(space, error, SPACE_PAUSE_S)

    def _failed(self, space: str, error: LaminaError, pause_s: float) -> None:
        self.errors += 1
        self.last_error = str(error)
        if lane(space) in self._lanes:
            self._dirty[space] = time.monotonic() + pause_s
        log.warning("embed_put_off", space=space, error=str(error))

    async def _batch(self, space: str) -> bool:
        """Make one batch of vectors; False when every text of the space has one."""
        identity = self._identity = await self.embedding.identity()
        cache = EmbedCache(self._home.spaces / space, identity, self.embedding.config)
        try:
            await cache.open()
            work = await self._page(space, cache)
            if not work.todo:
                await self._complete(space, cache, work)
                return False
            most = await self.embedding.batch()
            now, work.todo = work.todo[:most], work.todo[most:]
            try:
                vectors = await self.embedding.passages([text for _, text in now])
            except Unavailable:
                work.todo = now + work.todo
                raise
            if await self._forgot(space, work):
                self._work.pop(space, None)  # what was read may hold what was forgotten meanwhile: it is read again
                return True
            await cache.put([hash for hash, _ in now], vectors)
            self._made(work, len(now))
        except Damaged:
            removed(cache_path(self._home.spaces / space, identity))
            self._work.pop(space, None)
            raise
        finally:
            await cache.close()
        return True

    async def _forgot(self, space: str, work: Work) -> bool:
        async with self._views.hold(space, until=0) as view:
            return view.view.n != work.generation or await view.view.read(erased_seq) != work.erased_seq

    def _made(self, work: Work, count: int) -> None:
        now = time.monotonic()
        if self._batch_at is not None and now > self._batch_at:
            late = count / (now - self._batch_at)
            self._per_second = late if not self._per_second else (1 - LATE) * self._per_second + LATE * late
        self._batch_at = now
        self.made += count
        work.left = max(len(work.todo), work.left - count)

    async def _page(self, space: str, cache: EmbedCache) -> Work:
        """The work of a space with something to do, if there is anything at all."""
        last = await self._bus.last(space_subject(space))
        count = await cache.counted()
        if not count:  # it is new, or somebody removed it
            self._work.pop(space, None)
        while True:
            async with self._views.use(space, until=last.seq + 1 if last else 0) as view:
                work = self._work.get(space)
                if work is None or work.generation != view.view.n:
                    work = self._work[space] = Work(view.view.n)
                if work.todo:
                    return work
                rows, texts, gone = await view.view.read(partial(page, work=work))
            if gone:
                await cache.drop(gone)
            if not rows:
                return work
            missing = await cache.missing([hash for hash, _ in rows])
            work.todo = [(hash, text) for hash, text in dict(rows).items() if hash in missing]
            work.left = max(len(work.todo), texts - count)

    async def _complete(self, space: str, cache: EmbedCache, work: Work) -> None:
        """Say up to where every text has a vector, and remove those of models that are not used any more."""
        await cache.completed(self._bus.epoch, work.top[0])
        for path in cache.path.parent.glob("embeddings-*.db"):
            if path != cache.path:
                removed(path)
