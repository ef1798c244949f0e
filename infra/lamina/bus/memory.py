"""The bus in memory: the semantics of the port without a server, for tests and for thinking about the rest.

Everything lives in one event loop. `MemoryLog` is what connections share; each `MemoryBus` is one of them.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import structlog

from lamina.bus import subjects, wire
from lamina.bus.port import Ack, Handler, Listener, Message, Outgoing, StreamInfo
from lamina.errors import Closed, Conflict, Invalid, LaminaError, LogFull, Timeout, Unavailable

MAX_BATCH = 1000
_OVERHEAD_BYTES = 30  # what the file store adds to a message, about

_log = structlog.get_logger(__name__)


def _now_us() -> int:
    return time.time_ns() // 1000


class MemoryLog:
    """The log and the wires that several `MemoryBus` share.

    Switches for tests: `down` (every call is `Unavailable`, readers wait), `lose_acks` (that many publishes
    to come are stored, and answered with `Timeout`), `now_us` (the clock of arrival times and dedup window).
    """

    def __init__(
        self,
        *,
        epoch: str | None = None,
        max_bytes: int = 1 << 33,
        max_payload: int = wire.MAX_PAYLOAD,
        duplicate_window_s: float = 120.0,
        now_us: Callable[[], int] = _now_us,
    ) -> None:
        self.epoch = epoch or str(uuid.uuid4())
        self.max_bytes = max_bytes
        self.max_payload = max_payload
        self.duplicate_window_s = duplicate_window_s
        self.now_us = now_us
        self.lose_acks = 0
        self.last_seq = 0
        self.messages: dict[int, Message] = {}
        self.served: list[_Served] = []
        self.listened: list[_Listened] = []
        self._size = 0
        self._seq_of: dict[str, tuple[int, int]] = {}
        self._down = False
        self._changed: set[asyncio.Event] = set()

    @property
    def down(self) -> bool:
        return self._down

    @down.setter
    def down(self, value: bool) -> None:
        self._down = value
        self.changed()

    @property
    def info(self) -> StreamInfo:
        return StreamInfo(
            epoch=self.epoch,
            first_seq=next(iter(self.messages), self.last_seq + 1),
            last_seq=self.last_seq,
            messages=len(self.messages),
            size_bytes=self._size,
            max_bytes=self.max_bytes,
        )

    def refill(self, epoch: str | None = None) -> None:
        """Begin a new epoch with an empty log, as after the loss of the store."""
        self.epoch = epoch or str(uuid.uuid4())
        self.messages.clear()
        self._seq_of.clear()
        self.last_seq = self._size = 0
        self.changed()

    def append(self, message: Outgoing) -> Ack:
        """Store one message unless its id is known: then the answer is the first one's position."""
        known = self.known(message.id)
        if known is not None:
            return Ack(known, duplicate=True)
        self.check_room([message])
        self._store(message)
        return Ack(self.last_seq)

    def append_all(self, batch: Sequence[Outgoing]) -> Ack:
        """Store all of a batch or nothing of it."""
        ids = [message.id for message in batch if message.id is not None]
        if len(set(ids)) < len(ids) or any(self.known(one) is not None for one in ids):
            raise Conflict("a message of the batch is in the log already, or twice in it; nothing was stored")
        self.check_room(batch)
        for message in batch:
            self._store(message)
        return Ack(self.last_seq)

    def known(self, message_id: str | None) -> int | None:
        """The position of the message that came under this id within the dedup window."""
        found = self._seq_of.get(message_id) if message_id is not None else None
        if found is None or self.now_us() - found[1] > self.duplicate_window_s * 1e6:
            return None
        return found[0]

    def check_room(self, batch: Sequence[Outgoing]) -> None:
        size = sum(_stored_bytes(m.subject, m.data, wire.encode_headers(m.headers, m.id)) for m in batch)
        if self._size + size > self.max_bytes:
            raise LogFull(f"the log holds {self._size} of {self.max_bytes} bytes; trim it or raise max_bytes")

    def remove(self, seq: int) -> bool:
        message = self.messages.pop(seq, None)
        if message is None:
            return False
        self._size -= _stored_bytes(message.subject, message.data, wire.encode_headers(message.headers))
        return True

    def changed(self) -> None:
        """Wake whoever waits for something to happen to the log."""
        for event in self._changed:
            event.set()

    def watch(self, event: asyncio.Event) -> None:
        self._changed.add(event)

    def unwatch(self, event: asyncio.Event) -> None:
        self._changed.discard(event)

    def _store(self, message: Outgoing) -> None:
        self.last_seq += 1
        at_us = self.now_us()
        block = wire.encode_headers(message.headers, message.id)
        stored = Message(self.last_seq, message.subject, message.data, at_us, wire.decode_headers(block))
        self.messages[self.last_seq] = stored
        self._size += _stored_bytes(message.subject, message.data, block)
        if message.id is not None:
            self._seq_of[message.id] = (self.last_seq, at_us)
        self.changed()


class MemoryBus:
    """One connection to a `MemoryLog`; keeps every promise of `lamina.bus.port.Bus`."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self._closed = False
        self._open: list[MemoryReader | _Served | _Listened] = []

    @property
    def connected(self) -> bool:
        return not self._closed and not self.log.down

    @property
    def epoch(self) -> str:
        return self.log.epoch

    async def publish(
        self,
        subject: str,
        data: bytes,
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 5.0,
    ) -> Ack:
        message = Outgoing(subject, bytes(data), id, headers)
        self._check(message)
        await self._reach()
        ack = self.log.append(message)
        return self._answer(ack)

    async def publish_batch(self, messages: Sequence[Outgoing], *, timeout_s: float = 30.0) -> Ack:
        if not 1 <= len(messages) <= MAX_BATCH:
            raise Invalid(f"a batch of {len(messages)} messages; 1 to {MAX_BATCH} are allowed")
        for message in messages:
            self._check(message)
        await self._reach()
        return self._answer(self.log.append_all(messages))

    def read(self, subjects_: Sequence[str], *, after: int, name: str) -> MemoryReader:
        if self._closed:
            raise Closed("this bus was closed")
        subjects.check_filters(subjects_)
        reader = MemoryReader(self.log, tuple(subjects_), after)
        self._open.append(reader)
        return reader

    async def get(self, seq: int, *, timeout_s: float = 5.0) -> Message | None:
        await self._reach()
        return self.log.messages.get(seq)

    async def last(self, subject: str, *, timeout_s: float = 5.0) -> Message | None:
        subjects.check_pattern(subject)
        await self._reach()
        for seq in reversed(self.log.messages):
            if subjects.matches(subject, self.log.messages[seq].subject):
                return self.log.messages[seq]
        return None

    async def next(self, subject: str, after: int, *, timeout_s: float = 5.0) -> Message | None:
        subjects.check_pattern(subject)
        await self._reach()
        for seq, message in self.log.messages.items():
            if seq > after and subjects.matches(subject, message.subject):
                return message
        return None

    async def info(self, *, timeout_s: float = 5.0) -> StreamInfo:
        await self._reach()
        return self.log.info

    async def erase(self, seq: int, *, timeout_s: float = 5.0) -> bool:
        await self._reach()
        return self.log.remove(seq)

    async def request(self, subject: str, data: bytes, *, timeout_s: float) -> bytes:
        subjects.check_plain(subject)
        wire.check_size(subject, b"", data, self.log.max_payload)
        await self._reach()
        answers = [one.answer(subject, bytes(data)) for one in _one_per_queue(self.log.served, subject)]
        if not answers:
            raise Unavailable(f"nobody serves {subject}")
        try:
            async with asyncio.timeout(timeout_s):
                done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError as error:
            raise Timeout(f"no answer on {subject} within {timeout_s} s") from error
        first = done.pop()
        if first.cancelled():
            raise Unavailable(f"whoever served {subject} went away before it answered")
        return first.result()

    async def serve(self, subject: str, handler: Handler, *, queue: str = "") -> _Served:
        subjects.check_pattern(subject)
        await self._reach()
        served = _Served(self.log, subject, handler, queue)
        self._open.append(served)
        return served

    async def notify(self, subject: str, data: bytes) -> None:
        if self._closed:
            raise Closed("this bus was closed")
        subjects.check_plain(subject)
        wire.check_size(subject, b"", data, self.log.max_payload)
        await asyncio.sleep(0)
        if self.log.down:
            return
        for one in list(self.log.listened):
            if subjects.matches(one.pattern, subject):
                asyncio.get_running_loop().call_soon(one.hear, subject, bytes(data))

    async def listen(self, subject: str, listener: Listener) -> _Listened:
        subjects.check_pattern(subject)
        await self._reach()
        listened = _Listened(self.log, subject, listener)
        self._open.append(listened)
        return listened

    async def close(self) -> None:
        self._closed = True
        for one in self._open:
            await one.close()
            if isinstance(one, _Served):
                one.cancel()
        self._open.clear()

    def _check(self, message: Outgoing) -> None:
        subjects.check_logged(message.subject)
        block = wire.encode_headers(message.headers, message.id)
        wire.check_size(message.subject, block, message.data, self.log.max_payload)

    async def _reach(self) -> None:
        if self._closed:
            raise Closed("this bus was closed")
        await asyncio.sleep(0)  # a real bus lets other tasks run here
        if self.log.down:
            raise Unavailable("the bus is down")

    def _answer(self, ack: Ack) -> Ack:
        if self.log.lose_acks > 0:
            self.log.lose_acks -= 1
            raise Timeout("the publish was not answered in time; repeat it with the same id")
        return ack


class MemoryReader:
    """Catch-up reading of a `MemoryLog`."""

    def __init__(self, log: MemoryLog, patterns: tuple[str, ...], after: int) -> None:
        self._log = log
        self._patterns = patterns
        self._returned = after  # the last message given out
        self._scanned = after  # everything up to here was looked at
        self._found: deque[int] = deque()
        self._epoch = log.epoch
        self._event = asyncio.Event()
        self._woken = self._closed = False
        log.watch(self._event)

    async def fetch(self, max_messages: int, wait_s: float) -> list[Message]:
        if max_messages < 1:
            raise Invalid(f"a fetch of {max_messages} messages; at least 1 must be asked for")
        deadline = asyncio.get_running_loop().time() + wait_s
        reached = False
        await asyncio.sleep(0)
        while True:
            self._event.clear()
            reached = reached or not self._log.down
            found = self._take(max_messages)
            if found or self._woken:
                self._woken = False
                return found
            try:
                async with asyncio.timeout_at(deadline):
                    await self._event.wait()
            except TimeoutError:
                if reached:
                    return []
                raise Unavailable("the bus was down for all of the wait") from None

    def wake(self) -> None:
        self._woken = True
        self._event.set()

    @property
    def pending(self) -> int:
        self._scan()
        return sum(1 for seq in self._found if seq in self._log.messages)

    async def close(self) -> None:
        self._closed = True
        self._log.unwatch(self._event)
        self._event.set()

    def _take(self, max_messages: int) -> list[Message]:
        if self._closed:
            raise Closed("this reader was closed")
        if self._log.down:
            return []
        if self._log.epoch != self._epoch:
            raise Conflict(f"the log began a new epoch, {self._log.epoch}; read again from its beginning")
        self._scan()
        taken: list[Message] = []
        while self._found and len(taken) < max_messages:
            message = self._log.messages.get(self._found.popleft())
            if message is not None:  # erased since
                taken.append(message)
                self._returned = message.seq
        return taken

    def _scan(self) -> None:
        for seq in range(self._scanned + 1, self._log.last_seq + 1):
            message = self._log.messages.get(seq)
            if message and any(subjects.matches(pattern, message.subject) for pattern in self._patterns):
                self._found.append(seq)
        self._scanned = max(self._scanned, self._log.last_seq)


class _Served:
    """A served subject; requests under way go on after `close`, until they are answered or the bus closes."""

    def __init__(self, log: MemoryLog, pattern: str, handler: Handler, queue: str) -> None:
        self.pattern = pattern
        self.queue = queue
        self._log = log
        self._handler = handler
        self._tasks: set[asyncio.Task[bytes]] = set()
        log.served.append(self)

    def answer(self, subject: str, data: bytes) -> asyncio.Task[bytes]:
        task = asyncio.get_running_loop().create_task(self._run(subject, data))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        if self in self._log.served:
            self._log.served.remove(self)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _done(self, task: asyncio.Task[bytes]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # taken note of: the requester may have gone

    async def _run(self, subject: str, data: bytes) -> bytes:
        try:
            reply = await self._handler(subject, data)
            wire.check_size(subject, b"", reply, self._log.max_payload)
        except LaminaError as error:
            raise wire.error_of(type(error).__name__, str(error)) from None
        except Exception as error:  # noqa: BLE001 - a handler's fault must reach the requester as an answer
            _log.exception("request failed", subject=subject)
            raise Unavailable(f"the handler of {subject} failed: {type(error).__name__}") from None
        return reply


class _Listened:
    def __init__(self, log: MemoryLog, pattern: str, listener: Listener) -> None:
        self.pattern = pattern
        self._log = log
        self._listener = listener
        log.listened.append(self)

    def hear(self, subject: str, data: bytes) -> None:
        if self not in self._log.listened:
            return
        try:
            self._listener(subject, data)
        except Exception:  # noqa: BLE001 - one listener's fault is not the next one's
            _log.exception("listener failed", subject=subject)

    async def close(self) -> None:
        if self in self._log.listened:
            self._log.listened.remove(self)


def _one_per_queue(served: Sequence[_Served], subject: str) -> list[_Served]:
    found: dict[object, _Served] = {}
    for one in served:
        if subjects.matches(one.pattern, subject):
            found.setdefault(one.queue or one, one)
    return list(found.values())


def _stored_bytes(subject: str, data: bytes, headers: bytes) -> int:
    return len(subject) + len(data) + len(headers) + _OVERHEAD_BYTES
