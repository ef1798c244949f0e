"""One request to the services of a space, and its answer."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from lamina.bus import Bus
from lamina.errors import Invalid, Unavailable

R = TypeVar("R", bound=Struct)


async def asked_of(bus: Bus, subject: str, request: Struct, kind: type[R], timeout_s: float) -> R:
    """The answer to `request`; raises as `Bus.request`, and `Invalid` for a request that cannot be sent."""
    verb = subject.rsplit(".", 1)[1]
    try:
        payload = msgspec.json.encode(request)
    except (UnicodeEncodeError, TypeError, OverflowError) as error:
        raise Invalid(f"{verb}: the request cannot be sent: {error}") from error
    reply = await bus.request(subject, payload, timeout_s=timeout_s)
    try:
        return msgspec.json.decode(reply, type=kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(
            f"{verb}: the answer is not understood ({error}); restart the daemon: `lamina down`"
        ) from error
