"""Served and listened subjects in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lamina.bus import subjects, wire
from lamina.bus.memory.log import MemoryLog
from lamina.bus.port import Handler, Listener
from lamina.errors import LaminaError, Unavailable
from lamina.log import get_logger

_log = get_logger()


class Served:
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


class Listened:
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


def one_per_queue(served: Sequence[Served], subject: str) -> list[Served]:
    found: dict[object, Served] = {}
    for one in served:
        if subjects.matches(one.pattern, subject):
            found.setdefault(one.queue or one, one)
    return list(found.values())
