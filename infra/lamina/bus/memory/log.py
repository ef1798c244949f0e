"""The log in memory, which its connections share."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lamina.bus import wire
from lamina.bus.port import Ack, Message, Outgoing, StreamInfo
from lamina.errors import Conflict, LogFull

if TYPE_CHECKING:
    from lamina.bus.memory.rpc import Listened, Served

_OVERHEAD_BYTES = 30  # what the file store adds to a message, about


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
        self.served: list[Served] = []
        self.listened: list[Listened] = []
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


def _stored_bytes(subject: str, data: bytes, headers: bytes) -> int:
    return len(subject) + len(data) + len(headers) + _OVERHEAD_BYTES
