"""The recall log: what memory is asked, as events of their own, where a home wants that."""

from __future__ import annotations

import asyncio

from lamina import events
from lamina.bus import Bus
from lamina.errors import LaminaError
from lamina.events import RecallAsked
from lamina.ids import event_subject, untoken, uuid7
from lamina.log import get_logger
from lamina.records import Hits
from lamina.requests import MAX_QUERY_CHARS, Recall
from lamina.times import aware

MOST_WAITING = 64
log = get_logger()


class Asked:
    """Of one query service. Answers never wait for it; what the log cannot take now is not recorded, and said so."""

    def __init__(self, bus: Bus, *, on: bool) -> None:
        self._bus = bus
        self._on = on
        self._tasks: set[asyncio.Task[None]] = set()

    def note(self, space: str, request: Recall, hits: Hits) -> None:
        """Record a question that was answered; an empty one is none."""
        if not self._on or hits.status == "unavailable" or not request.query.strip():
            return
        if len(self._tasks) >= MOST_WAITING:
            log.warning("recall_not_recorded", space=space, why="the log takes no more now")
            return
        task = asyncio.create_task(self._publish(space, request, len(hits.items)), name="lamina-asked")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _publish(self, space: str, request: Recall, found: int) -> None:
        data = RecallAsked(
            query=request.query[:MAX_QUERY_CHARS], limit=request.limit, layers=request.layers or (), found=found
        )
        try:
            event = events.make(data, id=uuid7(), space=untoken(space), session=request.session, time=aware(None))
            await self._bus.publish(event_subject(space, event.type), events.encode(event), id=event.id)
        except LaminaError as error:
            log.warning("recall_not_recorded", space=space, why=f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
