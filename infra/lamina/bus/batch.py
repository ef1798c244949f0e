"""Atomic batches (JetStream ADR-50): all messages of a batch in order and together, or none.

The whole batch is sent at once: the first message and the last are requests, those between are plain publishes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

from nats.nuid import NUID

from lamina.bus import subjects, wire
from lamina.bus.api import Answer, ack_of, answer_of, error_of
from lamina.bus.connection import DRAIN_BYTES, Connection, Lost
from lamina.bus.port import Ack, Outgoing
from lamina.errors import Invalid, Timeout

AT_ONCE = 8

_connection_id = NUID().next().decode()
_number = count()


class Batches:
    """The batches of one connection: a few at once, since the server holds 50 of a stream open and no more."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Ack:
        """Append a batch; see `lamina.bus.port.Bus.publish_batch`. `Busy` when others hold too many open."""
        if not 1 <= len(messages) <= wire.MAX_BATCH:
            raise Invalid(f"a batch of {len(messages)} messages; 1 to {wire.MAX_BATCH} are allowed")
        blocks = _blocks(messages, self._connection.max_payload)
        try:
            async with asyncio.timeout(timeout_s), self._gate:
                return await _publish(self._connection, messages, blocks)
        except TimeoutError:
            raise Timeout(f"a batch was not answered within {timeout_s} s; it may be stored") from None
        except Lost as error:
            raise Timeout(f"{error}; the batch may be stored") from error


async def _publish(connection: Connection, messages: Sequence[Outgoing], blocks: Sequence[bytes]) -> Ack:
    named = {message.subject for message in messages}
    commit_reply, commit = connection.expect(named)
    first_reply, first = (commit_reply, commit) if len(messages) == 1 else connection.expect(named)
    try:
        await _send(connection, messages, blocks, first_reply, commit_reply)
        if first is not commit:
            begun = await first
            if begun.data or begun.status:
                error = answer_of(begun, Answer, "beginning a batch").error
                if error is not None:
                    raise error_of(error, "beginning a batch")
        return ack_of(await commit, "publishing a batch")
    finally:
        for future in (first, commit):
            if future.done() and not future.cancelled():
                future.exception()  # one failure is told, not both
            future.cancel()


def _blocks(messages: Sequence[Outgoing], limit: int) -> list[bytes]:
    """The header blocks of a batch, everything checked before a byte is sent."""
    batch_id = f"{_connection_id}{next(_number)}"
    blocks = []
    for n, message in enumerate(messages, 1):
        subjects.check_logged(message.subject)
        headers = {**(message.headers or {}), wire.BATCH_ID: batch_id, wire.BATCH_SEQUENCE: str(n)}
        if n == len(messages):
            headers[wire.BATCH_COMMIT] = "1"
        block = wire.encode_headers(headers, message.id)
        wire.check_size(message.subject, block, message.data, limit)
        blocks.append(block)
    return blocks


async def _send(
    connection: Connection, messages: Sequence[Outgoing], blocks: Sequence[bytes], first: str, commit: str
) -> None:
    queued = 0
    for n, (message, block) in enumerate(zip(messages, blocks, strict=True), 1):
        reply = commit if n == len(messages) else first if n == 1 else ""
        connection.send(message.subject, message.data, headers=block, reply=reply)
        queued += len(message.data)
        if queued > DRAIN_BYTES:
            await connection.socket_ready()
            queued = 0
