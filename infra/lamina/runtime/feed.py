"""One reading of the log for all services of a process.

Parsing and decoding a message costs about as much as folding it, so a service that shares a process with others
takes what one of them made to be read. None waits for another: the feed reads on as soon as its foremost reader
has all that is held, and one that is too far behind what is held, or ahead of it, reads for itself until they meet.
"""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_right
from collections.abc import Sequence

from lamina.bus import Bus, Message, Reader
from lamina.errors import Closed, Conflict, Invalid, LaminaError, Unavailable
from lamina.runtime import reading

READ = 500
"""Messages that are made to be read at once."""
READ_WAIT_S = 5.0
TOGETHER_S = 0.02
"""How long messages are collected that the log says are coming."""
MOST = 32_768
MOST_BYTES = 32 * 1024 * 1024
"""What is held of the log for readers that are behind, at most."""
LEAST = 512
"""So much is held for readers that are about to meet the feed."""
BULK = 32
"""From so many messages at once on there is more to do than to answer."""
GIVE_WAY_S = 30.0
"""How long a reader stands back for urgent ones, at most, before it gets what is held for it."""
QUIET_S = 0.5
"""How long urgent readers must have had nothing to do before the others go on: longer than a busy importer pauses."""
LOOK_S = 0.1
"""How often one that stands back looks whether it may go on."""


class Feed:
    """The messages on `subjects`, read once for all `FeedReader`s of a process; closed by its owner."""

    def __init__(self, bus: Bus, subjects: Sequence[str]) -> None:
        self.bus = bus
        self.subjects = tuple(subjects)
        self.urgent: set[FeedReader] = set()
        self._reader: Reader | None = None
        self._reading: asyncio.Task[None] | None = None
        self._epoch = ""
        self._floor = self._head = 0  # what is behind the one, up to the other, is held
        self._held: list[Message] = []
        self._bytes = 0
        self._readers: set[FeedReader] = set()

    def read(self, *, after: int, name: str, urgent: bool = False) -> FeedReader:
        """A reader as `Bus.read` gives one; see `FeedReader`."""
        reader = FeedReader(self, after=after, name=name, urgent=urgent)
        self._readers.add(reader)
        if urgent:
            self.urgent.add(reader)
        return reader

    def forget(self, reader: FeedReader) -> None:
        """Called by a reader that was closed."""
        self._readers.discard(reader)
        self.urgent.discard(reader)

    async def meets(self, position: int) -> bool:
        """Will everything behind `position` come from this feed? It begins where its first reader is."""
        if self._reader is None or self._epoch != self.bus.epoch:
            before = self._reader
            self._end()
            self._epoch = self.bus.epoch
            self._reader = self.bus.read(self.subjects, after=position, name="feed")
            self._floor = self._head = position
            if before is not None:
                await before.close()
        return self._holds(position)

    def behind(self, position: int) -> int:
        """How many messages are held behind `position`."""
        return len(self._held) - self._after(position)

    @property
    def is_busy(self) -> bool:
        """Has an urgent reader much to do, or had it just now?"""
        return any(reader.is_busy for reader in self.urgent)

    @property
    def pending(self) -> int:
        """Messages of the log behind those that are held, as last told by it."""
        return self._reader.pending if self._reader is not None else 0

    def take(self, position: int, most: int) -> list[Message]:
        """Up to `most` of what is held behind `position`. With the last of much the next is read in advance,
        while this is folded."""
        first = self._after(position)
        taken = self._held[first : first + most]
        if len(taken) >= BULK and taken[-1].seq == self._head:
            self._go_on()
        return taken

    async def more(self, deadline: float, woken: asyncio.Event) -> None:
        """Return once more is held, or nothing came for a while, or at `deadline`, or when `woken` is set; raises
        what reading raised. Readers that wait at the same time wait for the same reading."""
        task = self._go_on()
        waiting = asyncio.ensure_future(woken.wait())
        try:
            timeout_s = max(0.0, deadline - asyncio.get_running_loop().time())
            await asyncio.wait({task, waiting}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if task.done() and not task.cancelled():
            task.result()

    def _go_on(self) -> asyncio.Task[None]:
        """The reading that is under way, or a new one."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="lamina-feed")
            self._reading.add_done_callback(_told)
        return self._reading

    async def __aenter__(self) -> Feed:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the reading; readers raise `Closed` from now on."""
        for reader in list(self._readers):
            await reader.close()
        if self._reading is not None:
            self._reading.cancel()
        if self._reader is not None:
            await self._reader.close()
        self._end()

    async def _read(self) -> None:
        """Hold what comes next. What the reading raised, all who wait for it get to know."""
        reader = self._reader
        assert reader is not None  # noqa: S101 - whoever waits for more has met the feed
        try:
            messages = await reader.fetch(READ, READ_WAIT_S)
            if messages:
                await self._collect(reader, messages)
            if messages and self._reader is reader:
                self._hold(messages)
        except (Conflict, Closed):
            if self._reader is reader:
                self._end()
            await reader.close()
            raise
        finally:
            self._reading = None

    async def _collect(self, reader: Reader, messages: list[Message]) -> None:
        """A batch is in the log as one, but comes in pieces: folded piece by piece it would cost much more."""
        until = asyncio.get_running_loop().time() + TOGETHER_S
        while reader.pending and len(messages) < READ and (left := until - asyncio.get_running_loop().time()) > 0:
            with contextlib.suppress(LaminaError):  # what is there is good; the next reading meets the error again
                messages += await reader.fetch(READ - len(messages), left)

    def _hold(self, messages: Sequence[Message]) -> None:
        if len(messages) >= BULK:
            for reader in self.urgent:
                if self._holds(reader.position):
                    reader.is_given()
        self._held += map(_read, messages)
        self._bytes += sum(len(message.data) for message in messages)
        self._head = messages[-1].seq
        self._trim()

    def _trim(self) -> None:
        """Let go of what all have had, and of what the slowest have not where it becomes too much."""
        needed = min((reader.position for reader in self._readers if reader.position >= self._floor), default=0)
        spare = max(0, min(self._after(needed), len(self._held) - LEAST))
        drop, dropped_bytes = 0, 0
        for message in self._held:
            enough = len(self._held) - drop <= MOST and self._bytes - dropped_bytes <= MOST_BYTES
            if drop >= spare and enough:
                break
            drop += 1
            dropped_bytes += len(message.data)
        if drop:
            self._floor = self._held[drop - 1].seq
            self._bytes -= dropped_bytes
            del self._held[:drop]

    def _holds(self, position: int) -> bool:
        return self._floor <= position <= self._head

    def _after(self, position: int) -> int:
        return bisect_right(self._held, position, key=_seq)

    def _end(self) -> None:
        self._reader = None
        self._held.clear()
        self._bytes = 0


class FeedReader:
    """Reads from a feed what is held there, and for itself where the feed is elsewhere; see `lamina.bus.Reader`.

    One that is not urgent is given nothing while an urgent one has much to do, for 30 s at most, and then much at
    once: the time of a process goes first to what callers wait for.
    """

    def __init__(self, feed: Feed, *, after: int, name: str, urgent: bool) -> None:
        self.position = after
        self._feed = feed
        self._name = name
        self._urgent = urgent
        self._epoch = feed.bus.epoch
        self._own: Reader | None = None
        self._pending = 0
        self._woken = asyncio.Event()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._given = False
        self._quiet_from = 0.0
        self._stood_back_from: float | None = None

    async def fetch(self, max_messages: int, wait_s: float) -> list[Message]:
        if max_messages < 1:
            raise Invalid(f"a fetch of {max_messages} messages; at least 1 must be asked for")
        deadline = self._loop.time() + wait_s
        if self._given:
            self._given = False
            self._quiet_from = self._loop.time() + QUIET_S
        while True:
            if self._closed:
                raise Closed("this reader was closed")
            if self._feed.bus.epoch != self._epoch:
                raise Conflict("the log began a new epoch; read again from its beginning")
            if not await self._feed.meets(self.position):
                return await self._for_itself(max_messages, deadline)
            await self._join()
            if self._woken.is_set() or not self._stands_back():
                messages = self._feed.take(self.position, max_messages)
                if messages or self._woken.is_set():
                    self._woken.clear()
                    return self._return(messages)
            if self._loop.time() >= deadline:
                if not self._feed.bus.connected:
                    raise Unavailable("the bus was away for all of the wait")
                return []
            await self._wait(deadline)

    def wake(self) -> None:
        self._woken.set()
        if self._own is not None:
            self._own.wake()

    @property
    def pending(self) -> int:
        return self._own.pending if self._own is not None else self._feed.behind(self.position) + self._feed.pending

    async def close(self) -> None:
        self._closed = True
        self._woken.set()
        self._feed.forget(self)
        await self._join()

    def is_given(self) -> None:
        """Much is there for this reader; until it asks for more it has much to do."""
        self._given = True

    @property
    def is_busy(self) -> bool:
        """Has it much to do, or had it just now?"""
        return self._given or self._loop.time() < self._quiet_from

    async def _for_itself(self, max_messages: int, deadline: float) -> list[Message]:
        if self._own is None:
            self._own = self._feed.bus.read(self._feed.subjects, after=self.position, name=self._name)
        if self._woken.is_set():
            self._woken.clear()
            self._own.wake()
        return self._return(await self._own.fetch(max_messages, max(0.0, deadline - self._loop.time())))

    async def _join(self) -> None:
        if self._own is not None:
            own, self._own = self._own, None
            await own.close()

    def _return(self, messages: list[Message]) -> list[Message]:
        self._stood_back_from = None
        if messages:
            self.position = messages[-1].seq
        if len(messages) >= BULK:
            self._given = True
        return messages

    def _stands_back(self) -> bool:
        """Not for urgent ones to do their work? Never so far that what is held for this reader could be let go."""
        behind = self._feed.behind(self.position)
        if self._urgent or not behind or not self._feed.is_busy:
            self._stood_back_from = None
            return False
        now = self._loop.time()
        if self._stood_back_from is None:
            self._stood_back_from = now
        return behind < MOST // 2 and now - self._stood_back_from < GIVE_WAY_S

    async def _wait(self, deadline: float) -> None:
        if self._feed.behind(self.position):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(LOOK_S, deadline - self._loop.time())):
                    await self._woken.wait()
        else:
            await self._feed.more(deadline, self._woken)


def _told(reading: asyncio.Task[None]) -> None:
    """Whoever waits is told; where nobody does any more, the next reading meets the error again."""
    if not reading.cancelled():
        reading.exception()


def _seq(message: Message) -> int:
    return message.seq


def _read(message: Message) -> Message:
    """The message with what stands in it; as it is where it was published to no space."""
    try:
        return reading.read(message, reading.space_of(message))
    except Invalid:
        return message
