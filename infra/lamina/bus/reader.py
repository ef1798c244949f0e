"""Catch-up reading over JetStream: an ephemeral pull consumer without acks, re-made whenever it is in doubt.

nats-py's own fetch waits out its whole timeout when the server restarts under it, and gives an empty list when
its consumer is gone. Here every answer of the server is heard at once by one standing subscription; requests
for more are sent ahead, so that a reader that keeps up never waits for a round trip.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING

import msgspec
from nats.nuid import NUID

from lamina.bus import api, wire
from lamina.bus.api import ConsumerAnswer, Reply, answer_of, error_of
from lamina.bus.port import Message
from lamina.bus.subjects import STREAM
from lamina.errors import Closed, Conflict, Denied, Invalid, LaminaError, Timeout, Transient, Unavailable
from lamina.log import get_logger

if TYPE_CHECKING:
    from lamina.bus.nats import NatsBus

AHEAD = 1024
"""Messages asked for but not yet returned, at most; asked again when half of them were returned."""
AHEAD_BYTES = 8 * 1024 * 1024
PULL_S = 60
HEARTBEAT_S = 5
SILENCE_S = 12.0
"""No message and no heartbeat for so long: the consumer is in doubt."""
INACTIVE_S = 60
SET_UP_S = 5.0
RETRY_S = 0.1

_ACK = b"$JS.ACK."
_nuid = NUID()
_log = get_logger()


class NatsReader:
    """A reader of the stream; see `lamina.bus.port.Reader`."""

    def __init__(self, bus: NatsBus, patterns: tuple[str, ...], *, after: int, name: str) -> None:
        self._bus = bus
        self._connection = bus.connection
        self._loop = asyncio.get_running_loop()
        self._patterns = patterns
        self._name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
        self._epoch = bus.epoch
        self._received = max(after, 0)
        self._buffer: deque[tuple[Message, int]] = deque()
        self._buffered_bytes = 0
        self._pending = 0
        self._event = asyncio.Event()
        self._woken = self._closed = False
        self._set_up: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._failure: LaminaError | None = None
        self._inbox = f"{self._connection.inbox}.{_nuid.next().decode()}"
        self._sink = 0
        self._consumer = b""  # empty while there is none to rely on
        self._expected = 1  # the consumer sequence of the next message
        self._credit = 0  # messages asked of this consumer and not yet come
        self._heard_at = 0.0
        self._connection.watchers.add(self._on_connection)

    async def fetch(self, max_messages: int, wait_s: float) -> list[Message]:
        if max_messages < 1:
            raise Invalid(f"a fetch of {max_messages} messages; at least 1 must be asked for")
        deadline = self._loop.time() + wait_s
        reached = False
        while True:
            self._event.clear()
            self._raise_final()
            self._maintain()
            if self._buffer or self._woken:
                self._woken = False
                return self._take(max_messages)
            reached = reached or (self._bus.connected and self._failure is None)
            try:
                async with asyncio.timeout_at(min(deadline, self._next_look())):
                    await self._event.wait()
            except TimeoutError:
                if self._loop.time() < deadline:
                    continue
                if reached:
                    return []
                raise Unavailable("the bus was away for all of the wait") from self._failure

    def wake(self) -> None:
        self._woken = True
        self._event.set()

    @property
    def pending(self) -> int:
        return len(self._buffer) + self._buffer[-1][1] if self._buffer else self._pending

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._event.set()
        self._connection.watchers.discard(self._on_connection)
        if self._set_up is not None:
            self._set_up.cancel()
        self._drop_consumer()
        self._connection.drop_sink(self._sink)
        self._bus.forget(self)

    # -- giving out

    def _take(self, max_messages: int) -> list[Message]:
        taken: list[Message] = []
        while self._buffer and len(taken) < max_messages:
            message, self._pending = self._buffer.popleft()
            self._buffered_bytes -= len(message.data)
            taken.append(message)
        self._maintain()
        return taken

    def _raise_final(self) -> None:
        if self._closed:
            raise Closed("this reader was closed")
        if self._buffer or self._failure is None or isinstance(self._failure, Transient):
            return
        failure = self._failure
        if not isinstance(failure, Conflict):
            self._failure = None  # the next fetch tries again
        raise failure

    # -- keeping a consumer

    def _maintain(self) -> None:
        """Ask for more, or begin to make a consumer, whatever is needed now."""
        if not self._bus.connected:
            return
        now = self._loop.time()
        if self._consumer and self._credit > 0 and now - self._heard_at > SILENCE_S:
            _log.warning("a bus consumer fell silent", reader=self._name)
            self._drop_consumer()
        if self._consumer:
            self._ask_for_more(now)
        elif self._set_up is None and now >= self._not_before:
            self._set_up = self._loop.create_task(self._make_consumer())

    def _next_look(self) -> float:
        if self._consumer and self._credit > 0:
            return self._heard_at + SILENCE_S
        return max(self._not_before, self._loop.time() + RETRY_S)

    def _ask_for_more(self, now: float) -> None:
        held = self._credit + len(self._buffer)
        if held > AHEAD // 2 or self._buffered_bytes > AHEAD_BYTES:
            return
        wanted = AHEAD - held
        if self._credit == 0:
            self._heard_at = now
        self._credit += wanted
        request = {
            "batch": wanted,
            "max_bytes": AHEAD_BYTES,
            "expires": PULL_S * 10**9,
            "idle_heartbeat": HEARTBEAT_S * 10**9,
        }
        self._connection.send(
            self._next_subject,
            msgspec.json.encode(request),
            reply=f"{self._inbox}.{self._consumer.decode()}",
        )

    async def _make_consumer(self) -> None:
        try:
            async with asyncio.timeout(2 * SET_UP_S):
                if not self._sink:
                    self._sink = await self._connection.subscribe_sink(
                        self._inbox + ".*", self._on_message, timeout_s=SET_UP_S
                    )
                await self._check_epoch()
                await self._create()
            self._failure = None
        except TimeoutError:
            self._fail(Timeout("the bus did not set up a consumer in time"))
        except LaminaError as error:
            self._fail(error)
        finally:
            self._set_up = None
            self._event.set()

    def _fail(self, error: LaminaError) -> None:
        self._failure = error
        self._not_before = self._loop.time() + RETRY_S

    async def _check_epoch(self) -> None:
        await self._bus.stream(timeout_s=SET_UP_S)
        self._epoch = self._epoch or self._bus.epoch
        if self._bus.epoch != self._epoch:
            raise Conflict(f"the log began a new epoch, {self._bus.epoch}; read again from its beginning")

    async def _create(self) -> None:
        name = f"{self._name}-{_nuid.next().decode()}"
        request = {
            "stream_name": STREAM,
            "action": "create",
            "config": {
                "name": name,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self._received + 1,
                "ack_policy": "none",
                "inactive_threshold": INACTIVE_S * 10**9,
                "filter_subjects": self._patterns,
                "mem_storage": True,
                "num_replicas": 1,
            },
        }
        reply = await self._connection.ask(
            f"{api.CONSUMER_CREATE}.{name}", msgspec.json.encode(request), timeout_s=SET_UP_S
        )
        answer = answer_of(reply, ConsumerAnswer, "making a consumer")
        if answer.error is not None:
            raise error_of(answer.error, "making a consumer")
        self._forget_consumer()
        self._consumer = name.encode()
        self._connection.denials[self._next_subject.lower()] = self._on_denied
        self._expected = 1
        if not self._buffer:
            self._pending = answer.num_pending

    def _drop_consumer(self) -> None:
        """Rely on the consumer no more; the server is told so, and forgets it by itself where it did not hear."""
        if self._consumer:
            self._connection.send(f"{api.CONSUMER_DELETE}.{self._consumer.decode()}", b"")
        self._forget_consumer()

    def _forget_consumer(self) -> None:
        self._connection.denials.pop(self._next_subject.lower(), None)
        self._consumer = b""
        self._credit = 0

    @property
    def _next_subject(self) -> str:
        return f"{api.CONSUMER_NEXT}.{self._consumer.decode()}"

    # -- hearing

    def _on_denied(self) -> None:
        self._fail(Denied("the credentials do not allow to read from the stream"))
        self._drop_consumer()
        self._event.set()

    def _on_connection(self) -> None:
        self._forget_consumer()
        self._not_before = 0.0
        self._event.set()

    def _on_message(self, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if not reply.startswith(_ACK):
            self._on_status(subject, Reply(headers, data))
            return
        tokens = reply.split(b".")
        at = 0 if len(tokens) == 9 else 2  # the second form has domain and account before the stream
        if len(tokens) < 9 or tokens[3 + at] != self._consumer:
            return
        seq = int(tokens[5 + at])
        if int(tokens[6 + at]) != self._expected:
            _log.warning("a gap in what the bus sent; reading again from behind it", reader=self._name)
            self._drop_consumer()
            self._event.set()
            return
        self._expected += 1
        self._credit -= 1
        self._heard_at = self._loop.time()
        if seq <= self._received:  # a server may clamp a start beyond the end of the log
            return
        self._received = seq
        found = wire.decode_headers(headers) if headers else None
        message = Message(seq, wire.text(subject), data, int(tokens[7 + at]) // 1000, found)
        self._buffer.append((message, int(tokens[8 + at])))
        self._buffered_bytes += len(data)
        self._event.set()

    def _on_status(self, subject: bytes, reply: Reply) -> None:
        """A pull request ended, or lives: 100 heartbeat, 408 its time is over, 409 why it was ended."""
        if subject.rpartition(b".")[2] != self._consumer:
            return
        self._heard_at = self._loop.time()
        if reply.status == 100:
            return
        headers = wire.decode_headers(reply.headers) or {}
        left = headers.get("Nats-Pending-Messages", "")
        if reply.status in (404, 408, 409) and left.isdigit() and b"Deleted" not in reply.headers:
            self._credit = max(0, self._credit - int(left))
        else:
            _log.info("a bus consumer ended", reader=self._name, why=reply.headers[9:80].decode("utf-8", "replace"))
            self._forget_consumer()
        self._event.set()
