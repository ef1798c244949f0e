"""Questions about the memory of a moment: what is asked for, and recall over the views of the past."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from lamina.errors import Conflict, Invalid, LaminaError
from lamina.query.past import Pasts
from lamina.query.positions import Positions
from lamina.query.recall import WAIT_SHARE, checked, recall, unavailable
from lamina.records import AsOf, Hits
from lamina.requests import Recall
from lamina.runtime.registry import fold_services

RECALLED = ("journal", "atoms", "scenarios", "persona", "vectors")
PROMPTED = (*RECALLED, "offload")
WHY = ("journal", "atoms", "scenarios", "persona")
REMEDY = "ask again: it is made meanwhile; or give a longer deadline_s"


def moment(as_of: AsOf) -> AsOf:
    """As it will be looked for; `Invalid` where it names no moment, or two."""
    if (as_of.seq is None) == (as_of.time is None):
        raise Invalid("as_of is either a position of the log or a time")
    if as_of.seq is not None and as_of.seq < 0:
        raise Invalid(f"as_of {as_of.seq} is no position: they begin at 1")
    if as_of.time is not None and as_of.time.utcoffset() is None:
        raise Invalid(f"as_of {as_of.time.isoformat()} has no UTC offset; give one")
    return as_of


def installed(services: Sequence[str]) -> tuple[str, ...]:
    """Those of `services` that there are."""
    return tuple(name for name in services if name in fold_services())


async def recall_past(pasts: Pasts, live: Positions, space: str, request: Recall, as_of: AsOf) -> Hits:
    """As `recall`, over what was known then. `unavailable`, with how far it is, where it cannot be made in time.

    Raises `Invalid`, and `Conflict` for a position of another epoch.
    """
    until_s = time.monotonic() + checked(request).deadline_s
    services = installed(RECALLED if request.layers != ("l0",) else ("journal", "persona", "vectors"))
    try:
        head = await live.head(space, request.deadline_s)
        wait_s = WAIT_SHARE * request.deadline_s
        async with pasts.hold(space, moment(as_of), services, head, wait_s=wait_s) as past:
            left_s = max(0.01, until_s - time.monotonic())
            then = replace(request, deadline_s=left_s, now=request.now or as_of.time)
            return await recall(past.positions, space, then, past.vectors)
    except (Invalid, Conflict):
        raise
    except LaminaError as error:
        return unavailable([], "as_of", str(error), REMEDY)
