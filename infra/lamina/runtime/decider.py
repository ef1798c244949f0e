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
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lamina import events
from lamina.bus import Bus
from lamina.errors import Busy, Closed, Permanent, Transient
from lamina.ids import decision_id, derived_id, event_subject, lane, untoken
from lamina.log import get_logger
from lamina.runtime.apply import BACKOFF_S, CODE_ERRORS, Cursor, backoff_s
from lamina.runtime.feed import GIVE_WAY_S, LOOK_S
from lamina.runtime.following import Numbers
from lamina.runtime.history import space_subject
from lamina.runtime.index import Index
from lamina.runtime.open_view import OpenView
from lamina.runtime.spec import Due, NotYet, Service, Unmade, Wanted
from lamina.runtime.views import Views
from lamina.times import from_micros, text_of

S = TypeVar("S", bound=Struct)
JITTER = 0.2
NOT_YET_S = 0.5
"""How long a decision is put off that must see what is not there yet."""
log = get_logger()


def now_us() -> int:
    return time.time_ns() // 1000


class Decider(Generic[S]):
    """Round-robin over the spaces that are due; `most` decisions are being made at once, never two of a space. While
    `stands_back` says so, it waits for more urgent work, but not for ever."""

    def __init__(
        self,
        service: Service[S],
        bus: Bus,
        views: Views[S],
        index: Index,
        *,
        most: int = 8,
        clock_us: Callable[[], int] = now_us,
        stands_back: Callable[[], bool] = lambda: False,
    ) -> None:
        self._service = service
        self._bus = bus
        self._views = views
        self._index = index
        self._clock = clock_us
        self._stands_back = stands_back
        self._slots = asyncio.Semaphore(most)
        self._lanes: frozenset[int] = frozenset()
        self._due: dict[str, int] = {}
        self._unsaved: set[str] = set()
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._reached: dict[str, tuple[str, int]] = {}  # of busy spaces: where their view is
        self._awaited: dict[str, tuple[str, int]] = {}  # space -> (epoch, seq) of the decision that must come back
        self._changed = asyncio.Event()
        self._stopping = False
        self.made = 0

    @property
    def due(self) -> dict[str, int]:
        """Space -> when it is due, in microseconds; also those whose decision is under way."""
        return self._due | dict.fromkeys(self._busy, 0) | dict.fromkeys(self._awaited, 0)

    def moved(self, space: str, cursor: Cursor[S]) -> None:
        """The view of `space` moved on: it may be due now, or later, or no more."""
        epoch, seq = self._awaited.get(space, ("", 0))
        if cursor.seq >= seq or epoch != self._bus.epoch:
            self._awaited.pop(space, None)
        if space in self._busy:
            self._reached[space] = (self._bus.epoch, cursor.seq)
        if self._service.decide is None:
            return
        try:
            wanted = self._service.decide(cursor.state, self._clock())
        except CODE_ERRORS as error:
            self._put_off(space, BACKOFF_S[-1], error)
            return
        self._set_wanted(space, wanted)

    async def save(self) -> None:
        """Write down what is due, so that a restart knows of it although the events lie behind its position."""
        unsaved, self._unsaved = self._unsaved, set()
        try:
            if unsaved:
                self._unsaved |= await self._index.set_due({space: self._due.get(space) for space in unsaved})
        except BaseException:
            self._unsaved |= unsaved
            raise

    async def take(self, lanes: frozenset[int]) -> None:
        """Decide for the spaces of these lanes from now on. What is due in those that are new stands in the index."""
        gained, self._lanes = lanes - self._lanes, lanes
        self._unsaved = {space for space in self._unsaved if lane(space) in lanes}
        self._due = {space: at for space, at in self._due.items() if lane(space) in lanes}
        self._awaited = {space: at for space, at in self._awaited.items() if lane(space) in lanes}
        if gained:
            known = await self._index.due()
            self._due = {space: at for space, at in known.items() if lane(space) in gained} | self._due
        self._changed.set()

    def stop_waiting(self) -> None:
        """Look now what is due, as after a jump of the clock."""
        self._changed.set()

    def stop(self) -> None:
        self._stopping = True
        self._changed.set()

    async def run(self, caught_up: asyncio.Event) -> None:
        """Decide until `stop`, from the moment the views have seen the end of the log.

        A decision that is being made when it stops is given up: its inputs stay where they are.
        """
        await caught_up.wait()
        try:
            while not self._stopping:
                self._changed.clear()
                if self._ready():
                    await self._give_way()
                for space in self._ready():
                    task = asyncio.create_task(self._one(space), name=f"{self._service.name}-decide")
                    self._busy[space] = task
                await self._until_next()
        finally:
            under_way = list(self._busy.values())
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _give_way(self) -> None:
        """Deciding can wait while there is more urgent work, but not for ever."""
        until = time.monotonic() + GIVE_WAY_S
        while self._stands_back() and not self._stopping and time.monotonic() < until:  # noqa: ASYNC110 - no event ends it
            await asyncio.sleep(LOOK_S)

    def _set_wanted(self, space: str, wanted: Wanted | Due | None) -> None:
        at_us = wanted.at_us if isinstance(wanted, Due) else None if wanted is None else 0
        self._set_due(space, at_us)
        self._changed.set()

    def _set_due(self, space: str, at_us: int | None) -> None:
        if lane(space) not in self._lanes:
            return  # it was decided about when its lane was still ours
        if at_us is None:
            if self._due.pop(space, None) is None:
                return
        else:
            self._due[space] = at_us
        self._unsaved.add(space)

    def _waiting(self) -> list[str]:
        return [space for space in self._due if space not in self._busy and space not in self._awaited]

    def _ready(self) -> list[str]:
        now = self._clock()
        return sorted((space for space in self._waiting() if self._due[space] <= now), key=self._due.__getitem__)

    async def _until_next(self) -> None:
        waiting = [self._due[space] for space in self._waiting()]
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
        except NotYet as error:
            self._set_due(space, self._clock() + int(NOT_YET_S * 1e6))
            log.debug("decide_not_yet", service=self._service.name, space=space, why=str(error))
        except (Transient, Closed) as error:  # the view was closed under us because it was damaged or replaced
            self._put_off(space, BACKOFF_S[0], error)
        except CODE_ERRORS as error:
            self._put_off(space, BACKOFF_S[-1], error)
        finally:
            del self._busy[space]
            self._reached.pop(space, None)
            self._changed.set()

    def _put_off(self, space: str, wait_s: float, error: Exception) -> None:
        self._set_due(space, self._clock() + int(wait_s * 1e6))
        why = f"{type(error).__name__}: {error}"
        log.warning("decide_put_off", service=self._service.name, space=space, wait_s=wait_s, error=why)

    async def _decide(self, space: str) -> None:
        """One decision of one space: fold to the end of the log, look, act, publish. None is made while something is
        being forgotten: it might be made of that."""
        last = await self._bus.last(space_subject(space))
        until = last.seq + 1 if last else 0
        async with self._views.hold(space, until=until) as view:
            if view.forgetting:
                raise NotYet("something is being forgotten in this space")
            async with view.lock:
                await view.catch_up(until)
                cursor, following = await view.look(self._clock())
            wanted = following.wanted
            if not isinstance(wanted, Wanted):
                self._set_wanted(space, wanted)
                return
            epoch = self._bus.epoch
            erased = view.erased_seq
            event = await self._act(view, space, wanted, following.numbers)
            if not view.stands:
                async with self._views.hold(space, until=0) as now:
                    await now.cursor()
                    view = now
            if view.forgetting or view.erased_seq != erased:
                raise Busy("something was forgotten meanwhile, which it may have been made of; it is decided again")
        ack = await self._bus.publish(event_subject(space, event.type), events.encode(event), id=event.id)
        in_epoch, reached = self._reached.get(space, (epoch, cursor.seq))
        folded = in_epoch != epoch or reached >= ack.seq  # it may come back before we hear that it was published
        if ack.seq > cursor.seq and not folded and lane(space) in self._lanes:
            self._awaited[space] = (epoch, ack.seq)
        self.made += 1

    async def _act(self, view: OpenView[S], space: str, wanted: Wanted, now: Numbers) -> events.Event:
        assert self._service.act is not None  # noqa: S101 - a service that decides also acts
        name = untoken(space)
        if now.attempt >= self._service.max_attempts:
            unfit = Permanent(f"{now.attempt} attempts gave nothing that could be folded")
            return self._failure(name, wanted, now, unfit)
        try:
            made = await self._service.act(wanted, view.view)
            inputs = made.inputs or wanted.inputs
            data = {"step": wanted.step, "n": now.n, "inputs": inputs, "tokens": made.tokens, **made.data}
            return events.make_raw(
                made.type,
                events.canonical(data),
                id=decision_id(name, wanted.step, now.n, inputs),
                space=name,
                time=from_micros(self._clock()),
                cause=inputs,
            )
        except (Closed, NotYet):
            raise
        except Unmade as error:
            tried = replace(wanted, inputs=error.inputs or wanted.inputs)
            return self._failure(name, tried, now, error.cause, error.tokens)
        except (*CODE_ERRORS, OSError) as error:
            return self._failure(name, wanted, now, error)

    def _failure(self, name: str, wanted: Wanted, now: Numbers, error: Exception, tokens: int = 0) -> events.Event:
        """A failed attempt as an event: retries and their waiting survive what the log survives."""
        attempt = now.attempt + 1
        dead = attempt >= self._service.max_attempts or isinstance(error, Permanent)
        wait_s = backoff_s(attempt) * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter
        at = from_micros(self._clock())
        data = events.StepFailed(
            step=wanted.step,
            n=now.n,
            inputs=wanted.inputs,
            attempt=attempt,
            error=_text(error),
            not_before=None if dead else text_of(at + timedelta(seconds=wait_s)),
            tokens=tokens,
            dead=dead,
        )
        id = derived_id("failed", name, wanted.step, now.n, attempt, *wanted.inputs)
        return events.make(data, id=id, space=name, time=at, cause=wanted.inputs)


def _text(error: Exception) -> str:
    """What went wrong, as text that any event can hold."""
    return f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()[:500]
