"""The bus over NATS JetStream.

What a caller must know beyond the port: while there is no connection every call is `Unavailable` at once and
nothing is queued for later. A publish under way when the connection is lost raises `Timeout`: it may be
stored, so it is repeated with the same id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from lamina import times
from lamina.bus import api, subjects, wire
from lamina.bus.api import MessageAnswer, Reply, StreamAnswer, answer_of, error_of
from lamina.bus.batch import Batches
from lamina.bus.connection import Connection, Lost
from lamina.bus.port import Ack, Handler, Listener, Message, Outgoing, StreamInfo
from lamina.bus.reader import NatsReader
from lamina.bus.rpc import Heard, Served, ask
from lamina.errors import Closed, Denied, Invalid, Timeout, Unavailable
from lamina.log import get_logger

EPOCH_KEY = "lamina-epoch"

_log = get_logger()


class Credentials(Struct, frozen=True, forbid_unknown_fields=True):
    """How to log in: a user and password, or a `.creds` file (JWT and seed; needs the `nkeys` package).

    `inbox` is the prefix of the subjects on which this user may hear answers.
    """

    user: str = ""
    password: str = ""
    creds_file: str = ""
    inbox: str = "_INBOX"

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r}, creds_file={self.creds_file!r})"

    def options(self) -> dict[str, Any]:
        if self.creds_file:
            return {"user_credentials": self.creds_file}
        return {"user": self.user, "password": self.password} if self.user else {}


async def connect(
    urls: str | Sequence[str],
    *,
    credentials: Credentials | None = None,
    name: str = "lamina",
    timeout_s: float = 5.0,
) -> NatsBus:
    """Open a connection that from then on reconnects by itself, for ever, every 0.2 s.

    `Denied` for wrong credentials, `Unavailable` when no server answers in time, `Invalid` for malformed URLs
    or credentials. The stream need not exist yet; until it was seen, `epoch` is empty, and it stays so with
    credentials that may not see it: those of a client of one space.
    """
    connection = Connection(inbox=(credentials or Credentials()).inbox)
    options = {"name": name, **(credentials or Credentials()).options()}
    listed = [urls] if isinstance(urls, str) else list(urls)
    if not listed:
        raise Invalid("no URL of a bus was given")
    for url in listed:
        _check_url(url)
    await connection.open(listed, options, timeout_s)
    bus = NatsBus(connection)
    try:
        await bus.info(timeout_s=timeout_s)
    except Unavailable:
        _log.debug("connected to a bus without the stream")
    except Denied:
        bus.direct = True
    except BaseException:
        await bus.close()
        raise
    return bus


class NatsBus:
    """One connection to a NATS server; keeps every promise of `lamina.bus.port.Bus`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._epoch = ""
        self.direct = False
        """Are messages read without asking the stream's leader?"""
        self._closed = False
        self._batches = Batches(connection)
        self._readers: set[NatsReader] = set()
        self._served: set[Served] = set()

    @property
    def connected(self) -> bool:
        return not self._closed and bool(self.connection.is_connected)

    @property
    def epoch(self) -> str:
        return self._epoch

    async def publish(
        self,
        subject: str,
        data: bytes,
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 5.0,
    ) -> Ack:
        subjects.check_logged(subject)
        block = wire.encode_headers(headers, id)
        wire.check_size(subject, block, data, self.connection.max_payload)
        try:
            reply = await self.connection.ask(subject, data, headers=block, timeout_s=timeout_s)
        except Lost as error:
            raise Timeout(f"{error}; the message may be stored: repeat it with the same id") from error
        return api.ack_of(reply, "publishing")

    async def publish_batch(self, messages: Sequence[Outgoing], *, timeout_s: float = 30.0) -> Ack:
        return await self._batches.publish(messages, timeout_s)

    def read(self, subjects_: Sequence[str], *, after: int, name: str) -> NatsReader:
        self._check_open()
        subjects.check_filters(subjects_)
        reader = NatsReader(self, tuple(subjects_), after=after, name=name)
        self._readers.add(reader)
        return reader

    async def get(self, seq: int, *, timeout_s: float = 5.0) -> Message | None:
        return await self._message({"seq": seq}, timeout_s) if seq > 0 else None

    async def last(self, subject: str, *, timeout_s: float = 5.0) -> Message | None:
        subjects.check_pattern(subject)
        if self.direct and not subjects.has_wildcard(subject):  # the subject is in the open, so it can be permitted
            return _direct_answer(await self._api(f"{api.DIRECT_GET}.{subject}", {}, timeout_s))
        return await self._message({"last_by_subj": subject}, timeout_s)

    async def next(self, subject: str, after: int, *, timeout_s: float = 5.0) -> Message | None:
        subjects.check_pattern(subject)
        return await self._message({"seq": max(after, 0) + 1, "next_by_subj": subject}, timeout_s)

    async def info(self, *, timeout_s: float = 5.0) -> StreamInfo:
        answer = await self.stream(timeout_s=timeout_s)
        state = answer.state
        if state is None:
            raise Unavailable("the bus told nothing of the state of its stream")
        return StreamInfo(
            epoch=self._epoch,
            first_seq=state.first_seq if state.messages else state.last_seq + 1,
            last_seq=state.last_seq,
            messages=state.messages,
            size_bytes=state.bytes,
            max_bytes=answer.config.get("max_bytes", -1),
        )

    async def stream(self, *, timeout_s: float = 5.0) -> StreamAnswer:
        """Configuration and state of the stream as JetStream tells them. `Unavailable` where it is not there."""
        reply = await self._api(api.STREAM_INFO, {}, timeout_s)
        answer = answer_of(reply, StreamAnswer, "looking at the stream")
        if answer.error is not None:
            raise error_of(answer.error, "looking at the stream")
        self._epoch = answer.config.get("metadata", {}).get(EPOCH_KEY, "")
        # a replica may be behind the leader, and then `last` would say that something is not there yet
        self.direct = bool(answer.config.get("allow_direct")) and answer.config.get("num_replicas", 1) == 1
        return answer

    async def erase(self, seq: int, *, timeout_s: float = 5.0) -> bool:
        if seq < 1:
            return False
        reply = await self._api(api.MESSAGE_DELETE, {"seq": seq, "no_erase": False}, timeout_s)
        error = answer_of(reply, api.Answer, "erasing").error
        if error is None:
            return True
        if await self.get(seq, timeout_s=timeout_s) is None:  # JetStream has a code for each way of not being there
            return False
        raise error_of(error, "erasing")

    async def purge(self, subject: str, *, below: int, timeout_s: float = 30.0) -> int:
        subjects.check_pattern(subject)
        if below < 1:  # to JetStream 0 means everything
            return 0
        reply = await self._api(api.STREAM_PURGE, {"filter": subject, "seq": below}, timeout_s)
        answer = answer_of(reply, api.PurgeAnswer, "purging")
        if answer.error is not None:
            raise error_of(answer.error, "purging")
        return answer.purged

    async def request(self, subject: str, data: bytes, *, timeout_s: float) -> bytes:
        return await ask(self.connection, subject, data, timeout_s)

    async def serve(self, subject: str, handler: Handler, *, queue: str = "") -> Served:
        self._check_open()
        subjects.check_pattern(subject)
        served = Served(self.connection, handler)
        await served.open(subject, queue)
        self._served.add(served)
        return served

    async def notify(self, subject: str, data: bytes) -> None:
        self._check_open()
        subjects.check_plain(subject)
        wire.check_size(subject, b"", data, self.connection.max_payload)
        self.connection.send(subject, data)

    async def listen(self, subject: str, listener: Listener) -> Heard:
        self._check_open()
        subjects.check_pattern(subject)
        heard = Heard(self.connection, listener)
        await heard.open(subject)
        return heard

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for reader in list(self._readers):
            await reader.close()
        for one in list(self._served):
            await one.close()
            one.cancel()
        self.connection.flush_now()
        try:
            await self.connection.close()
        except asyncio.CancelledError:
            # nats-py cancels what it waits for itself when it is closed while reconnecting (seen: StreamWriter's
            # close waiter); only a cancellation of our own task is one
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise

    def forget(self, reader: NatsReader) -> None:
        """Called by a reader that was closed."""
        self._readers.discard(reader)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("this bus was closed")

    async def _api(self, subject: str, request: Mapping[str, object], timeout_s: float) -> Reply:
        return await self.connection.ask(subject, msgspec.json.encode(request), timeout_s=timeout_s)

    async def _message(self, which: Mapping[str, object], timeout_s: float) -> Message | None:
        if not self.direct:
            return await self._message_by_api(which, timeout_s)
        return _direct_answer(await self._api(api.DIRECT_GET, which, timeout_s))

    async def _message_by_api(self, which: Mapping[str, object], timeout_s: float) -> Message | None:
        reply = await self._api(api.MESSAGE_GET, which, timeout_s)
        answer = answer_of(reply, MessageAnswer, "reading a message")
        if answer.error is not None:
            if answer.error.err_code == api.NO_MESSAGE:
                return None
            raise error_of(answer.error, "reading a message")
        if answer.message is None:
            raise Unavailable("the bus gave no message")
        found = answer.message
        at_us = times.micros(times.parse(found.time))
        return Message(found.seq, found.subject, found.data, at_us, wire.decode_headers(found.hdrs))


def _direct_answer(reply: Reply) -> Message | None:
    if reply.status == 404:
        return None
    if reply.status:
        raise Unavailable(f"the bus gave no message: {reply.headers[9:80].decode(errors='replace')}")
    return _direct_message(reply)


def _direct_message(reply: Reply) -> Message:
    """The message of a direct get: the server puts its position among the message's own headers."""
    headers = wire.decode_headers(reply.headers) or {}
    own = {key: value for key, value in headers.items() if key not in _DIRECT}
    try:
        seq, subject, at = (headers[key] for key in _DIRECT[:3])
        return Message(int(seq), subject, reply.data, times.micros(times.parse(at)), own or None)
    except (KeyError, ValueError, Invalid) as error:
        raise Unavailable("the bus gave a message without its position") from error


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("nats", "tls", "ws", "wss") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise Invalid(f"{url[:200]!r} is no bus URL, such as nats://127.0.0.1:4222")


_DIRECT = ("Nats-Sequence", "Nats-Subject", "Nats-Time-Stamp", "Nats-Stream", "Nats-Num-Pending")
