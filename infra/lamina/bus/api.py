"""The JetStream API as it is spoken: its answers as structs, its errors as ours."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from lamina.bus.port import Ack
from lamina.bus.subjects import STREAM
from lamina.errors import (
    Busy,
    Conflict,
    Denied,
    Invalid,
    LaminaError,
    LogFull,
    TooLarge,
    Unavailable,
)

STREAM_CREATE = f"$JS.API.STREAM.CREATE.{STREAM}"
STREAM_UPDATE = f"$JS.API.STREAM.UPDATE.{STREAM}"
STREAM_INFO = f"$JS.API.STREAM.INFO.{STREAM}"
STREAM_PURGE = f"$JS.API.STREAM.PURGE.{STREAM}"
MESSAGE_GET = f"$JS.API.STREAM.MSG.GET.{STREAM}"
MESSAGE_DELETE = f"$JS.API.STREAM.MSG.DELETE.{STREAM}"
DIRECT_GET = f"$JS.API.DIRECT.GET.{STREAM}"
CONSUMER_CREATE = f"$JS.API.CONSUMER.CREATE.{STREAM}"
CONSUMER_DELETE = f"$JS.API.CONSUMER.DELETE.{STREAM}"
CONSUMER_NEXT = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}"

NO_MESSAGE = 10037
STREAM_MISSING = 10059
_STORE_FAILED = 10077
_KINDS: dict[int, type[LaminaError]] = {
    10023: LogFull,  # insufficient resources
    10047: LogFull,  # insufficient storage resources
    10028: LogFull,  # resource limits exceeded for the account
    10052: Invalid,  # a setting of the stream cannot be changed
    10054: TooLarge,
    10071: Conflict,  # wrong last sequence
    10176: Busy,  # a batch lost its beginning or a message: the server was restarted, or it had too much to do
    10199: Invalid,  # more than 1,000 messages in a batch
    10201: Conflict,  # a batch holds a known id
}
_ROOM = ("maximum bytes exceeded", "maximum messages exceeded", "no space left", "insufficient")


class Reply(NamedTuple):
    """An answer from the wire: its header block, undecoded, and its payload."""

    headers: bytes
    data: bytes

    @property
    def status(self) -> int:
        """The status that the server put in the first header line; 0 where it did not."""
        code = self.headers[9:12]
        return int(code) if self.headers.startswith(b"NATS/1.0 ") and code.isdigit() else 0


class ApiError(Struct, frozen=True):
    code: int
    err_code: int = 0
    description: str = ""


class Answer(Struct, frozen=True):
    error: ApiError | None = None


class PubAck(Answer, frozen=True):
    seq: int = 0
    duplicate: bool = False


class StreamState(Struct, frozen=True):
    messages: int
    bytes: int
    first_seq: int
    last_seq: int


class StreamAnswer(Answer, frozen=True):
    config: dict[str, Any] = field(default_factory=dict)
    state: StreamState | None = None


class PurgeAnswer(Answer, frozen=True):
    purged: int = 0


class StoredMessage(Struct, frozen=True):
    subject: str
    seq: int
    time: str
    data: bytes = b""
    hdrs: bytes = b""


class MessageAnswer(Answer, frozen=True):
    message: StoredMessage | None = None


class ConsumerAnswer(Answer, frozen=True):
    name: str = ""
    num_pending: int = 0


A = TypeVar("A", bound=Answer)
_decoders: dict[type[Answer], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind)
    for kind in (Answer, PubAck, StreamAnswer, PurgeAnswer, MessageAnswer, ConsumerAnswer)
}


def answer_of(reply: Reply, kind: type[A], doing: str) -> A:
    """The answer in a reply; `Unavailable` where nobody answers or what answers is no JetStream."""
    if reply.status == 503 and not reply.data:
        raise Unavailable(f"{doing}: the bus is there, but not its stream {STREAM}; it may still be starting")
    try:
        answer: A = _decoders[kind].decode(reply.data)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"{doing}: an answer that is none of JetStream's: {reply.data[:80]!r}") from error
    return answer


def ack_of(reply: Reply, doing: str) -> Ack:
    """The ack of a publish, or the error that the server met."""
    answer = answer_of(reply, PubAck, doing)
    if answer.error is not None:
        raise error_of(answer.error, doing)
    return Ack(answer.seq, answer.duplicate)


def error_of(error: ApiError, doing: str) -> LaminaError:
    """Our error for one of JetStream's."""
    message = f"{doing}: {error.description or 'failed'} ({error.code}/{error.err_code})"
    kind = _KINDS.get(error.err_code)
    if kind is None:
        kind = _by_class(error)
    if kind is LogFull:
        message += "; trim the log, raise its max_bytes or make room on its disk"
    return kind(message)


def _by_class(error: ApiError) -> type[LaminaError]:
    if error.err_code == _STORE_FAILED and any(text in error.description for text in _ROOM):
        return LogFull
    if error.code == 429:
        return Busy
    if error.code in (401, 403):
        return Denied
    return Invalid if error.code == 400 else Unavailable
