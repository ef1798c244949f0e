"""One connection to a NATS server: nats-py's client, made fit for a bus that must not lose or wait.

Measured reasons for each change to the client are in the comments; everything else is nats-py's own: connecting,
reconnecting, the protocol's parser, pings.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.nuid import NUID

from lamina.bus.api import Reply
from lamina.errors import Closed, Denied, Invalid, LaminaError, Timeout, Unavailable
from lamina.log import get_logger

Sink = Callable[[bytes, bytes, bytes, bytes], None]
"""(subject, reply subject, payload, header block): called for each message as soon as it is parsed."""

PENDING_BYTES = 64 * 1024 * 1024
DRAIN_BYTES = 1024 * 1024
RECONNECT_WAIT_S = 0.2
PING_S = 10

_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')
_log = get_logger()


class Lost(Unavailable):
    """The connection was lost while a request was under way: whether it was done is not known."""


class Connection(Client):
    """A NATS client with synchronous sinks, one flush per turn of the event loop, and errors that reach the caller.

    While it is not connected nothing is queued: a request is `Unavailable` at once. When the connection is
    lost every request under way raises `Lost` at once.
    """

    def __init__(self, *, inbox: str = "_INBOX") -> None:
        super().__init__()
        self.inbox = inbox
        self._loop = asyncio.get_running_loop()
        self._sinks: dict[int, Sink] = {}
        self._waiting: dict[bytes, tuple[asyncio.Future[Reply], frozenset[str]]] = {}
        self._token = count()
        self._reply_prefix = f"{inbox}.{NUID().next().decode()}."
        self._denied_subscriptions: set[str] = set()
        self._flush_due = False
        self._ended = False
        self._last_error: Exception | None = None
        self._refused: asyncio.Future[None] = self._loop.create_future()
        self.watchers: set[Callable[[], None]] = set()
        """Called whenever the connection was lost, regained or closed."""
        self.denials: dict[str, Callable[[], None]] = {}
        """By subject in lower case: called when a publish that expects no answer was refused."""

    async def open(self, urls: list[str], options: dict[str, Any], timeout_s: float) -> None:
        """Connect for the first time. `Denied` for wrong credentials, `Unavailable` when no server answers.

        Whatever it ends with, no socket is left open by a connection that was not made.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._open(urls, options)
        except TimeoutError:
            await self.close()
            why = self._last_error or "no answer"
            raise Unavailable(f"no bus at {', '.join(urls)} within {timeout_s} s: {why}") from self._last_error
        except BaseException:
            await self.close()
            raise

    async def _open(self, urls: list[str], options: dict[str, Any]) -> None:
        settings: dict[str, Any] = {
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnected,
            "reconnected_cb": self._on_change,
            "closed_cb": self._on_change,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": RECONNECT_WAIT_S,
            "ping_interval": PING_S,
            "max_outstanding_pings": 2,
            "pending_size": PENDING_BYTES,
            "skip_subject_validation": True,  # lamina.bus.subjects is stricter
        }
        connecting = asyncio.ensure_future(self.connect(urls, **settings, **options))
        try:
            await asyncio.wait({connecting, self._refused}, return_when=asyncio.FIRST_COMPLETED)
            if self._refused.done():
                raise Denied(f"the bus at {', '.join(urls)} refused the credentials")
            await connecting
        except (nats.errors.Error, OSError, ValueError, ImportError) as error:
            raise Invalid(f"no connection can be made with these URLs and credentials: {error!r}") from error
        finally:
            connecting.cancel()
            self._refused.cancel()
        await self.subscribe_sink(self._reply_prefix + "*", self._on_reply, timeout_s=5.0)

    # -- sending

    def send(self, subject: str, data: bytes, *, headers: bytes = b"", reply: str = "") -> None:
        """Queue one message for this turn of the loop; nothing is sent while there is no connection.

        nats-py makes a future, a queue entry and a task switch per message; one `call_soon` per turn moves
        the same bytes with a third of the time.
        """
        if not self.is_connected:
            return
        if headers:
            head = f"HPUB {subject} {reply} {len(headers)} {len(headers) + len(data)}\r\n".encode() + headers
        else:
            head = f"PUB {subject} {reply} {len(data)}\r\n".encode()
        self._pending += (head, data, b"\r\n")
        self._pending_data_size += len(head) + len(data) + 2
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush_now)

    def flush_now(self) -> None:
        """Hand everything queued to the socket."""
        self._flush_due = False
        if self.is_connected and self._pending and self._transport is not None:
            pending, self._pending, self._pending_data_size = self._pending, [], 0
            self._transport.writelines(pending)

    async def socket_ready(self) -> None:
        """Wait until the socket takes more: for whoever sends many megabytes."""
        self.flush_now()
        if self.is_connected and self._transport is not None:
            try:
                await self._transport.drain()  # type: ignore[no-untyped-call]
            except OSError as error:
                raise Lost("the connection was lost while sending") from error

    # -- asking

    def expect(self, subjects: Iterable[str]) -> tuple[str, asyncio.Future[Reply]]:
        """A reply subject and the future of what comes there, for a request on these subjects."""
        if self.is_closed:
            raise Closed("this bus was closed")
        if not self.is_connected:
            raise Unavailable("no connection to the bus; it is tried again all the time")
        token = b"%x" % next(self._token)
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._waiting[token] = (future, frozenset(subjects))
        future.add_done_callback(lambda _: self._waiting.pop(token, None))
        return self._reply_prefix + token.decode(), future

    async def ask(self, subject: str, data: bytes, *, headers: bytes = b"", timeout_s: float) -> Reply:
        """Send a request and wait for its one answer. `Timeout`, `Denied`, `Lost`, `Unavailable`, `Closed`."""
        reply, future = self.expect((subject,))
        self.send(subject, data, headers=headers, reply=reply)
        return await self.answer(future, subject, timeout_s)

    async def answer(self, future: asyncio.Future[Reply], subject: str, timeout_s: float) -> Reply:
        """What comes to `future` in time; a timer is cheaper than a task or a timeout scope per request."""
        timer = self._loop.call_later(timeout_s, _expire, future)
        try:
            return await future
        except TimeoutError:
            raise Timeout(f"no answer on {subject} within {timeout_s} s") from None
        finally:
            timer.cancel()

    # -- hearing

    async def subscribe_sink(self, subject: str, sink: Sink, *, queue: str = "", timeout_s: float) -> int:
        """Route a subject to `sink`; returns its number once the server knows of it. `Denied` when it may not be."""
        if self.is_closed:
            raise Closed("this bus was closed")
        if not self.is_connected:
            raise Unavailable("no connection to the bus; it is tried again all the time")
        number = self._sid + 1
        self._sinks[number] = sink  # before the first await: no message may go past it
        self._denied_subscriptions.discard(subject.lower())
        try:
            await self.subscribe(subject, queue=queue)
            await self._round_trip(timeout_s)
        except BaseException:
            self.drop_sink(number)
            raise
        if subject.lower() in self._denied_subscriptions:
            self.drop_sink(number)
            raise Denied(f"the credentials do not allow to subscribe to {subject}")
        return number

    def drop_sink(self, number: int) -> None:
        """End a subscription; what arrives from now on is dropped."""
        self._sinks.pop(number, None)
        if self._subs.pop(number, None) is not None and self.is_connected:
            self._pending.append(f"UNSUB {number}\r\n".encode())
            self._pending_data_size += 16
            self.flush_now()

    async def _round_trip(self, timeout_s: float) -> None:
        # nats-py's own flush writes its PING before the commands that are still queued, is not told when the
        # connection is lost, and a PONG that comes after its timeout ends the read loop
        _, future = self.expect(())
        pong: asyncio.Future[bool] = self._loop.create_future()

        def heard(_: asyncio.Future[bool]) -> None:
            if not future.done():
                future.set_result(Reply(b"", b""))

        pong.add_done_callback(heard)
        self._pongs.append(pong)
        self._pending.append(b"PING\r\n")
        self.flush_now()
        await self.answer(future, "PING", timeout_s)

    # -- what nats-py calls

    async def _connect_to_server(self, server: Any) -> None:
        # nats-py forgets the socket of an attempt that failed after it was opened; nobody else could close it. And
        # a cancellation that meets the end of an attempt is lost in its `wait_for`: it would go on after `close`
        self._hang_up()
        if not self._ended:
            await super()._connect_to_server(server)
        if self._ended:
            self._hang_up()
            self._status = Client.CLOSED
            raise asyncio.CancelledError

    def _hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        self._ended = True
        if self._flush_queue is not None:  # `connect` has begun
            await super().close()
        self._hang_up()  # nats-py leaves it open where it takes the connection for closed already

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        # nats-py decodes headers, builds a Msg and goes through a queue and a task for each message: 10 to 16 k
        # messages a second at best
        sink = self._sinks.get(sid)
        if sink is not None:
            try:
                sink(bytes(subject), bytes(reply), data, headers or b"")
            except Exception:  # noqa: BLE001 - it would end the read loop, and the connection with it, without a word
                _log.exception("a message could not be taken", subject=subject.decode("utf-8", "replace"))

    async def _process_err(self, err_msg: str) -> None:
        # nats-py tells the error callback alone, and closes for good on all but permission errors
        violation = _VIOLATION.search(err_msg)
        if violation is not None:
            self._on_violation(*violation.groups())
        elif not self.is_closed:
            _log.warning("bus error", error=err_msg)
            await self._process_op_err(nats.errors.Error(f"nats: {err_msg}"))

    def _on_violation(self, act: str, subject: str) -> None:
        if act == "subscription":
            self._denied_subscriptions.add(subject)
            return
        told = False
        for future, subjects in list(self._waiting.values()):
            denied = next((one for one in subjects if one.lower() == subject), None)
            if denied is not None and not future.done():
                future.set_exception(Denied(f"the credentials do not allow to publish to {denied}"))
                told = True
        if subject in self.denials:
            self.denials[subject]()
        elif not told:
            _log.warning("the bus refused a publish", subject=subject)

    def _on_reply(self, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        waiting = self._waiting.get(subject.rpartition(b".")[2])
        if waiting is not None and not waiting[0].done():
            waiting[0].set_result(Reply(headers, data))

    async def _on_error(self, error: Exception) -> None:
        self._last_error = error
        if "authorization violation" in str(error).lower() and not self._refused.done():
            self._refused.set_result(None)
        _log.debug("bus connection", error=repr(error))

    async def _on_disconnected(self) -> None:
        # what was queued and not sent must not be stored when somebody has long been told that it is not
        self._pending.clear()
        self._pending_data_size = 0
        self._abandon(Lost, "the connection to the bus was lost before the answer came")
        await self._on_change()

    async def _on_change(self) -> None:
        if self.is_closed:
            self._abandon(Closed, "this bus was closed")
        for watcher in list(self.watchers):
            watcher()

    def _abandon(self, kind: type[LaminaError], message: str) -> None:
        for future, _ in list(self._waiting.values()):
            if not future.done():
                future.set_exception(kind(message))


def _expire(future: asyncio.Future[Reply]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())
