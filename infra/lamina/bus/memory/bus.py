"""A connection to the log in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from lamina.bus import subjects, wire
from lamina.bus.memory.log import MemoryLog
from lamina.bus.memory.reader import MemoryReader
from lamina.bus.memory.rpc import Listened, Served, one_per_queue
from lamina.bus.port import Ack, Handler, Listener, Message, Outgoing, StreamInfo
from lamina.errors import Closed, Invalid, Timeout, Unavailable


class MemoryBus:
    """One connection to a `MemoryLog`; keeps every promise of `lamina.bus.port.Bus`."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self._closed = False
        self._open: list[MemoryReader | Served | Listened] = []

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
        if not 1 <= len(messages) <= wire.MAX_BATCH:
            raise Invalid(f"a batch of {len(messages)} messages; 1 to {wire.MAX_BATCH} are allowed")
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

    async def purge(self, subject: str, *, below: int, timeout_s: float = 30.0) -> int:
        subjects.check_pattern(subject)
        await self._reach()
        held = self.log.messages.values()
        gone = [one.seq for one in held if one.seq < below and subjects.matches(subject, one.subject)]
        return sum(self.log.remove(seq) for seq in gone)

    async def request(self, subject: str, data: bytes, *, timeout_s: float) -> bytes:
        subjects.check_plain(subject)
        wire.check_size(subject, b"", data, self.log.max_payload)
        await self._reach()
        answers = [one.answer(subject, bytes(data)) for one in one_per_queue(self.log.served, subject)]
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

    async def serve(self, subject: str, handler: Handler, *, queue: str = "") -> Served:
        subjects.check_pattern(subject)
        await self._reach()
        served = Served(self.log, subject, handler, queue)
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

    async def listen(self, subject: str, listener: Listener) -> Listened:
        subjects.check_pattern(subject)
        await self._reach()
        listened = Listened(self.log, subject, listener)
        self._open.append(listened)
        return listened

    async def close(self) -> None:
        self._closed = True
        for one in self._open:
            await one.close()
            if isinstance(one, Served):
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
