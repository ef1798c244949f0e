"""Catch-up reading of the log in memory."""

from __future__ import annotations

import asyncio
from collections import deque

from lamina.bus import subjects
from lamina.bus.memory.log import MemoryLog
from lamina.bus.port import Message
from lamina.errors import Closed, Conflict, Invalid, Unavailable


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
