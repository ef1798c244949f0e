"""Requests, answers and notifications over a connection."""

from __future__ import annotations

import asyncio

from lamina.bus import subjects, wire
from lamina.bus.connection import Connection
from lamina.bus.port import Handler, Listener
from lamina.errors import LaminaError, Unavailable
from lamina.log import get_logger

SUBSCRIBE_S = 5.0
INBOXES = b"_INBOX."

_log = get_logger()


async def ask(connection: Connection, subject: str, data: bytes, timeout_s: float) -> bytes:
    """Send a request and give its answer, or raise the error that its handler met."""
    subjects.check_plain(subject)
    wire.check_size(subject, b"", data, connection.max_payload)
    reply = await connection.ask(subject, data, timeout_s=timeout_s)
    if reply.status == 503 and not reply.data:
        raise Unavailable(f"nobody serves {subject}")
    headers = wire.decode_headers(reply.headers) if reply.headers else None
    if headers and wire.ERROR in headers:
        raise wire.error_of(headers[wire.ERROR], reply.data.decode("utf-8", "replace"))
    return reply.data


class Served:
    """A served subject; requests under way go on after `close`, until they are answered or the bus closes."""

    def __init__(self, connection: Connection, handler: Handler) -> None:
        self._connection = connection
        self._handler = handler
        self._number = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, subject: str, queue: str) -> None:
        self._number = await self._connection.subscribe_sink(
            subject, self._on_request, queue=queue, timeout_s=SUBSCRIBE_S
        )

    async def close(self) -> None:
        self._connection.drop_sink(self._number)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _on_request(self, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if reply.startswith(INBOXES):  # else whoever asks would have us write where it may not
            task = asyncio.get_running_loop().create_task(self._run(wire.text(subject), wire.text(reply), data))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, subject: str, reply: str, data: bytes) -> None:
        try:
            answer = await self._handler(subject, data)
            wire.check_size(subject, b"", answer, self._connection.max_payload)
            self._connection.send(reply, answer)
        except LaminaError as error:
            self._refuse(reply, error)
        except Exception as error:  # noqa: BLE001 - a handler's fault must reach the requester as an answer
            _log.exception("request failed", subject=subject)
            self._refuse(reply, Unavailable(f"the handler of {subject} failed: {type(error).__name__}"))

    def _refuse(self, reply: str, error: LaminaError) -> None:
        headers = wire.encode_headers(wire.error_reply(error))
        self._connection.send(reply, str(error).encode("utf-8", "replace")[:65536], headers=headers)


class Heard:
    """A listened subject; its listener is called as soon as a message is there."""

    def __init__(self, connection: Connection, listener: Listener) -> None:
        self._connection = connection
        self._listener = listener
        self._number = 0

    async def open(self, subject: str) -> None:
        self._number = await self._connection.subscribe_sink(subject, self._on_message, timeout_s=SUBSCRIBE_S)

    async def close(self) -> None:
        self._connection.drop_sink(self._number)

    def _on_message(self, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        try:
            self._listener(wire.text(subject), data)
        except Exception:  # noqa: BLE001 - one listener's fault is not the next one's, nor the connection's
            _log.exception("listener failed", subject=wire.text(subject))
