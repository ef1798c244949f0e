"""What stands in a message of the log: read once for all services of a process."""

from __future__ import annotations

from functools import lru_cache

from lamina import events
from lamina.bus import Message
from lamina.errors import Invalid, Permanent
from lamina.ids import CACHED, lane, token, untoken
from lamina.runtime.history import arrival_us
from lamina.runtime.spec import Recorded

_NOTHING = Recorded(seq=0, at_us=0, raw=b"")


class Read(Message, frozen=True, gc=False):
    """A message, and what stands in it. `space` is that of its subject; `blobs` are those that its data names."""

    space: str = ""
    recorded: Recorded = _NOTHING
    blobs: tuple[events.Blob, ...] = ()


def space_of(message: Message) -> str:
    """The space (its token) that a message was published to; `Invalid` when Lamina did not make its subject."""
    space = _space_in(message.subject)
    if space is None:
        raise Invalid(f"message {message.seq} on {message.subject[:200]!r} is not ours")
    return space


@lru_cache(CACHED)
def _space_in(subject: str) -> str | None:
    parts = subject.split(".")
    try:
        untoken(parts[3])
    except (IndexError, Invalid):
        return None
    return parts[3] if len(parts) == 5 and parts[2] == str(lane(parts[3])) else None


def read(message: Message, space: str) -> Read:
    """The message of `space` with what stands in it; what cannot be read is said in its `error`, never raised."""
    event: events.Event | None = None
    data: events.Data | None = None
    blobs: tuple[events.Blob, ...] = ()
    error = ""
    try:
        event = _event(message.data, space)
        data = events.decode_data(event)
        blobs = events.blobs_of(data) if data is not None else ()
    except Invalid as invalid:
        error = str(invalid)
    recorded = Recorded(
        seq=message.seq, at_us=arrival_us(message), raw=message.data, event=event, data=data, error=error
    )
    return Read(message.seq, message.subject, message.data, message.at_us, message.headers, space, recorded, blobs)


def _event(raw: bytes, space: str) -> events.Event:
    """The event in a message of `space`; `Invalid` for one that is not on one line, or that names another space."""
    if b"\n" in raw or b"\r" in raw:
        raise Invalid("the event is not on one line; it was not written by a Lamina client")
    event = events.decode(raw)
    try:
        own = token(event.space) == space
    except Permanent:
        own = False
    if not own:
        raise Invalid(f"event {event.id} was published to another space than it names")
    return event
