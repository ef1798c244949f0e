"""The decide loop: makes numbered decisions for spaces that are due, one at a time for each space.

A decision is published as an event and takes effect only when the view has folded it. The runtime does not
decide again for a space until then, and a view accepts a decision only if its number is above the last one it
has; so two workers, or one that slept through its lease, cost tokens and nothing else.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, TypeVar

import structlog
from msgspec import Struct

from lamina import events
from lamina.bus import Bus
from lamina.errors import Conflict, LaminaError, Permanent, Transient
from lamina.ids import decision_id, derived_id, event_subject, untoken
from lamina.runtime.apply import Cursor
from lamina.runtime.index import Index
from lamina.runtime.spec import Due, Service, Wanted
from lamina.runtime.views import OpenView, Views, space_subject
from lamina.times import from_micros

S = TypeVar("S", bound=Struct)
BACKOFF_S = (1.0, 5.0, 30.0, 120.0, 600.0)
log = structlog.get_logger()


def now_us() -> int:
    return time.time_ns() // 1000


class Decider(Generic[S]):
    """Round-robin over the spaces that are due; `most` decisions are being made at once, never two of a space."""

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        views: Views[S],
        index: Index,
        *,
        most: int = 8,
        clock_us: Callable[[], int] = now_us,
    ) -> None:
        self._service = service
        self._bus = bus
        self._views = views
        self._index = index
        self._clock = clock_us
        self._slots = asyncio.Semaphore(most)
        self._due: dict[str, int] = {}
        self._busy: set[str] = set()
        self._awaited: dict[str, int] = {}  # space -> seq of the decision that must come back first
        self._changed = asyncio.Event()
        self._stopping = False
        self.made = 0

    @property
    def due(self) -> dict[str, int]:
        """Space -> when it is due, in microseconds; also those whose decision is under way."""
        return self._due | dict.fromkeys(self._busy, 0) | dict.fromkeys(self._awaited, 0)

    def moved(self, space: str, cursor: Cursor[S]) -> None:
        """The view of `space` moved on: it may be due now, or later, or no more."""
        awaited = self._awaited.get(space)
        if awaited is not None and cursor.seq >= awaited:
            del self._awaited[space]
        decide = self._service.decide
        if decide is None:
            return
        wanted = decide(cursor.state, self._clock())
        if wanted is None:
            self._due.pop(space, None)
        else:
            self._due[space] = wanted.at_us if isinstance(wanted, Due) else 0
        self._changed.set()

    def stop(self) -> None:
        self._stopping = True
        self._changed.set()

    async def run(self, caught_up: asyncio.Event) -> None:
        """Decide until `stop`, from the moment the views have seen the end of the log."""
        self._due = await self._index.due() | self._due
        await caught_up.wait()
        async with asyncio.TaskGroup() as group:
            while not self._stopping:
                self._changed.clear()
                for space in self._ready():
                    self._busy.add(space)
                    group.create_task(self._one(space))
                await self._until_next()

    def _ready(self) -> list[str]:
        now = self._clock()
        ready = [
            space
            for space, at in self._due.items()
            if at <= now and space not in self._busy and space not in self._awaited
        ]
        return sorted(ready, key=self._due.__getitem__)

    async def _until_next(self) -> None:
        waiting = [at for space, at in self._due.items() if space not in self._busy and space not in self._awaited]
        timeout = max(0.0, (min(waiting) - self._clock()) / 1e6) if waiting else None
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _one(self, space: str) -> None:
        try:
            async with self._slots:
                if not self._stopping:
                    await self._decide(space)
        except Transient as error:
            self._due[space] = self._clock() + int(BACKOFF_S[0] * 1e6)
            log.warning("decide_put_off", service=self._service.name, space=space, error=str(error))
        except LaminaError as error:
            self._due[space] = self._clock() + int(BACKOFF_S[-1] * 1e6)
            log.warning("decide_failed", service=self._service.name, space=space, error=str(error))
        finally:
            self._busy.discard(space)
            self._changed.set()

    async def _decide(self, space: str) -> None:
        """One decision of one space: fold to the end of the log, look, act, publish."""
        last = await self._bus.last(space_subject(space))
        until = last.seq + 1 if last else 0
        async with self._views.use(space, until=until) as view:
            cursor = await view.catch_up(until)
        wanted = self._service.decide(cursor.state, self._clock()) if self._service.decide else None
        if not isinstance(wanted, Wanted):
            self.moved(space, cursor)
            return
        n, attempt, not_before = await self._numbers(view, wanted.step)
        if not_before > self._clock():
            self._due[space] = not_before
            await self._index.set_due(space, not_before)
            return
        event = await self._act(view, space, wanted, n, attempt)
        ack = await self._bus.publish(event_subject(space, event.type), events.encode(event), id=event.id)
        if ack.seq > cursor.seq:
            self._awaited[space] = ack.seq
        self.made += 1

    async def _numbers(self, view: OpenView[S], step: str) -> tuple[int, int, int]:
        def read(db: Any) -> tuple[int, int, int]:
            last = db.execute("SELECT n FROM decided WHERE step = ?", (step,)).fetchone()
            n = (last[0] if last else 0) + 1
            failed = db.execute("SELECT attempt, not_before_us FROM failed WHERE step = ? AND n = ?", (step, n))
            row = failed.fetchone()
            return (n, *row) if row else (n, 0, 0)

        return await view.view.read(read)

    async def _act(self, view: OpenView[S], space: str, wanted: Wanted, n: int, attempt: int) -> events.Event:
        assert self._service.act is not None  # noqa: S101 - a service that decides also acts
        name = untoken(space)
        try:
            made = await self._service.act(wanted, view.view)
        except (Transient, Permanent, Conflict) as error:
            return self._failure(name, wanted, n, attempt + 1, error)
        data = {"step": wanted.step, "n": n, "inputs": wanted.inputs, "tokens": made.tokens, **made.data}
        return events.make_raw(
            made.type,
            events.canonical(data),
            id=decision_id(name, wanted.step, n, wanted.inputs),
            space=name,
            time=from_micros(self._clock()),
            cause=wanted.inputs,
        )

    def _failure(self, name: str, wanted: Wanted, n: int, attempt: int, error: LaminaError) -> events.Event:
        """A failed attempt as an event: retries and their waiting survive what the log survives."""
        dead = attempt >= self._service.max_attempts or isinstance(error, Permanent)
        wait_s = BACKOFF_S[min(attempt, len(BACKOFF_S)) - 1] * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
        at = from_micros(self._clock())
        data = events.StepFailed(
            step=wanted.step,
            n=n,
            inputs=wanted.inputs,
            attempt=attempt,
            error=f"{type(error).__name__}: {error}"[:500],
            not_before=None if dead else (at + timedelta(seconds=wait_s)).isoformat(timespec="microseconds"),
            dead=dead,
        )
        id = derived_id("failed", name, wanted.step, n, attempt, *wanted.inputs)
        return events.make(data, id=id, space=name, time=at, cause=wanted.inputs)
