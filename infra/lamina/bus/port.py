"""The bus port: what every part of Lamina may ask of the log, whatever carries it.

Both adapters, `lamina.bus.nats` and `lamina.bus.memory`, pass one contract suite (tests/contract). Every
await has a deadline; every failure is one of `lamina.errors`:

- `Unavailable`: no connection, or the stream is not there. `Timeout`: no answer in time; the publish may or
  may not be stored, now or once the connection is back, so it is repeated with the same id.
- `TooLarge`: payload and headers exceed what the server takes (checked here, before a byte is sent: the
  server would close the connection for good).
- `LogFull`: the stream reached its limit, or its disk is full. `Denied`: the credentials do not allow it.
- `Conflict`: a batch holds a known id, or the log began a new epoch under a reader. `Closed`: this bus, or
  this reader, was closed.
- `Invalid`: a subject, header, batch or filter that no log could take; the log's subjects are
  `lamina.ev.>` and `lamina.blob.>`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

Handler = Callable[[str, bytes], Awaitable[bytes]]
"""(subject, payload) -> reply payload."""

Listener = Callable[[str, bytes], None]


class Message(Struct, frozen=True, gc=False):
    """A stored message. `at_us` is its arrival at the log in microseconds since 1970, UTC."""

    seq: int
    subject: str
    data: bytes
    at_us: int
    headers: Mapping[str, str] | None = None


class Ack(Struct, frozen=True):
    """A message is fsynced in the log at `seq`. `duplicate`: it was there already under the same id."""

    seq: int
    duplicate: bool = False


class Outgoing(Struct, frozen=True):
    """A message to be published; `id` becomes `Nats-Msg-Id`."""

    subject: str
    data: bytes
    id: str | None = None
    headers: Mapping[str, str] | None = None


class StreamInfo(Struct, frozen=True):
    """The state of the log: its epoch, its ends, its size. `first_seq` is `last_seq` + 1 when it is empty."""

    epoch: str
    first_seq: int
    last_seq: int
    messages: int
    size_bytes: int
    max_bytes: int


class Subscription(Protocol):
    """A served or listened subject; `close` ends it."""

    async def close(self) -> None: ...


class Reader(Protocol):
    """Catch-up reading in log order, from a position on, of the messages on some subjects.

    A gap in the consumer's own sequence, a lost consumer and a reconnect are handled inside: the reader goes
    on behind the last message that it returned, and returns none twice and none too few. One task fetches.
    """

    async def fetch(self, max_messages: int, wait_s: float) -> list[Message]:
        """Up to `max_messages`, as soon as there is one; an empty list when `wait_s` passed with none.

        Raises `Unavailable` when the bus was away for all of `wait_s`, `Closed` after `close`, `Conflict`
        when the stream is no longer the one the reader began on (a new epoch: read again from the beginning).
        A cancelled fetch loses nothing: what it would have returned comes with the next one.
        """
        ...

    def wake(self) -> None:
        """Let the waiting `fetch`, or else the next one, return at once with what there is (for shutdown and
        rebalancing)."""
        ...

    @property
    def pending(self) -> int:
        """Messages on these subjects behind the last one returned, as last told by the log."""
        ...

    async def close(self) -> None: ...


class Bus(Protocol):
    """One connection to the log. Owned by whoever opened it; `close` is idempotent."""

    @property
    def connected(self) -> bool: ...

    @property
    def epoch(self) -> str:
        """The epoch of the stream as last seen; positions are (epoch, seq)."""
        ...

    async def publish(
        self,
        subject: str,
        data: bytes,
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 5.0,
    ) -> Ack:
        """Append one message; returns once it is fsynced.

        An `id` known from the last two minutes stores nothing; the ack then names the first one's position.
        """
        ...

    async def publish_batch(self, messages: Sequence[Outgoing], *, timeout_s: float = 30.0) -> Ack:
        """Append 1 to 1,000 messages as one: all of them, in order and without others between, or none.

        Returns the ack of the last one. A known id inside raises `Conflict` and stores nothing: so does the
        repetition of a batch that raised `Timeout` and was stored, within two minutes, if it has ids.
        """
        ...

    def read(self, subjects: Sequence[str], *, after: int, name: str) -> Reader:
        """A reader of the messages on `subjects` (wildcards allowed, none overlapping) with seq > `after`."""
        ...

    async def get(self, seq: int, *, timeout_s: float = 5.0) -> Message | None:
        """The message at `seq`, or None where there is none (any more)."""
        ...

    async def last(self, subject: str, *, timeout_s: float = 5.0) -> Message | None:
        """The last message on `subject` (wildcards allowed), or None."""
        ...

    async def next(self, subject: str, after: int, *, timeout_s: float = 5.0) -> Message | None:
        """The first message on `subject` (wildcards allowed) with seq > `after`, or None."""
        ...

    async def info(self, *, timeout_s: float = 5.0) -> StreamInfo: ...

    async def erase(self, seq: int, *, timeout_s: float = 5.0) -> bool:
        """Overwrite the bytes of the message at `seq` on disk and remove it; False where there was none."""
        ...

    async def purge(self, subject: str, *, below: int, timeout_s: float = 30.0) -> int:
        """Remove the messages on `subject` (wildcards allowed) with seq < `below`; how many there were.

        Their room is given back, their bytes are not overwritten: `erase` does that.
        """
        ...

    async def request(self, subject: str, data: bytes, *, timeout_s: float) -> bytes:
        """Ask and wait for one answer. `Unavailable` at once when nobody serves the subject.

        A `LaminaError` that the handler raised is raised here with its kind and message; any other failure
        of a handler is `Unavailable`.
        """
        ...

    async def serve(self, subject: str, handler: Handler, *, queue: str = "") -> Subscription:
        """Answer requests on `subject` (wildcards allowed); each runs as a task of its own.

        Of the servers that share a `queue` name one gets each request. Closing the subscription takes no more
        requests; those under way go on until answered, or until the bus is closed.
        """
        ...

    async def notify(self, subject: str, data: bytes) -> None:
        """Tell whoever listens, best effort, unstored."""
        ...

    async def listen(self, subject: str, listener: Listener) -> Subscription:
        """Hear what is notified on `subject` (wildcards allowed)."""
        ...

    async def close(self) -> None: ...
