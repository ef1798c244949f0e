"""Trying parked events again, and letting them rest. Both are said in the log, so that they outlive every view."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from lamina import events, ids
from lamina.bus import Bus
from lamina.dead.parked import dead
from lamina.dead.records import Dead, Settled
from lamina.errors import Invalid, Transient, Unavailable
from lamina.events import DeadDropped, DeadRetried, StepFailed
from lamina.home import Home
from lamina.rebuild.progress import Moved
from lamina.rebuild.view import rebuild_view
from lamina.runtime.apply import read_meta
from lamina.runtime.registry import fold_services
from lamina.runtime.spec import Service
from lamina.runtime.worker import touch_subject
from lamina.store import Damaged, ViewReader
from lamina.times import aware

GIVEN_UP = "step.failed"
FOLD_S = 30.0
LOOK_S = 0.05


async def retry(home: Home, bus: Bus, wanted: Sequence[Dead], moved: Moved) -> list[Settled]:
    """Give events another chance: the view is folded anew, since order matters, and decisions that were given up are
    made due again. A decision is then made when its turn comes; one that its service does not take back stays parked.

    `Unavailable` when no worker of the service folds within 30 s; raises as `rebuild_view`.
    """
    for (space, name), group in _by_view(wanted):
        service = fold_services()[name]
        ones = list(group)
        for one in ones:
            if one.kind == GIVEN_UP:
                await _publish(bus, space, _retried(await _failure(bus, one), one))
        if any(one.kind != GIVEN_UP for one in ones):
            await rebuild_view(service, bus, home, space, moved)
        await _folded(home, bus, space, service)
    return _outcome(home, wanted)


async def drop(home: Home, bus: Bus, wanted: Sequence[Dead], reason: str) -> list[Settled]:
    """Let events rest: they are parked no more, in no rebuild either. The log and the ledger keep them.

    `Invalid` without a reason; `Unavailable` when no worker of the service folds within 30 s.
    """
    if not reason.strip():
        raise Invalid("dropping needs a reason, for whoever asks later: --reason TEXT")
    for (space, name), group in _by_view(wanted):
        data = DeadDropped(service=name, ids=tuple(dict.fromkeys(one.id for one in group)), reason=reason)
        await _publish(bus, space, data)
        await _folded(home, bus, space, fold_services()[name])
    return _outcome(home, wanted)


def _by_view(wanted: Iterable[Dead]) -> Iterable[tuple[tuple[str, str], Iterable[Dead]]]:
    ordered = sorted(wanted, key=lambda one: (one.space, one.service, one.seq))
    return groupby(ordered, key=lambda one: (ids.token(one.space), one.service))


async def _failure(bus: Bus, one: Dead) -> StepFailed:
    """The event of a decision that was given up."""
    message = await bus.get(one.seq)
    if message is None:
        raise Unavailable(f"event {one.seq} is in the log no more, so what it was made of is not known")
    return msgspec.json.decode(events.decode(message.data).data, type=StepFailed)


def _retried(failure: StepFailed, one: Dead) -> DeadRetried:
    return DeadRetried(service=one.service, target=one.id, step=failure.step, inputs=failure.inputs)


async def _publish(bus: Bus, space: str, data: DeadDropped | DeadRetried) -> None:
    event = events.make(data, id=ids.uuid7(), space=ids.untoken(space), time=aware(None))
    await bus.publish(ids.event_subject(space, event.type), events.encode(event), id=event.id)


async def _folded(home: Home, bus: Bus, space: str, service: Service[Any]) -> None:
    """Return once the view has folded what is in the log now."""
    last = await bus.last(f"{ids.SUBJECT_ROOT}.ev.{ids.lane(space)}.{space}.>")
    reader = ViewReader(home.spaces / space / "views" / f"{service.name}.db")
    until = time.monotonic() + FOLD_S
    try:
        while last is not None:
            with contextlib.suppress(Transient, Damaged):
                if await reader.read(lambda db: int(read_meta(db, "applied_seq", 0))) >= last.seq:
                    return
            if time.monotonic() > until:
                raise Unavailable(f"no worker of {service.name} folded within {FOLD_S:.0f} s; see `lamina status`")
            await bus.notify(touch_subject(service.name, space), b"")
            await asyncio.sleep(LOOK_S)
    finally:
        await reader.close()


def _outcome(home: Home, wanted: Sequence[Dead]) -> list[Settled]:
    now = {(one.space, one.service, one.id): one for one in dead(home, sorted({ids.token(x.space) for x in wanted}))}
    found = []
    for one in wanted:
        left = now.get((one.space, one.service, one.id))
        found.append(
            Settled(
                space=one.space,
                service=one.service,
                id=one.id,
                kind=one.kind,
                outcome="parked" if left else "taken",
                error=left.error if left else "",
            )
        )
    return found
