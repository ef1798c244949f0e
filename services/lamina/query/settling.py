"""Waiting until the views of a space have taken in what was published, and nothing of it is left to be decided."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lamina.bus import Bus
from lamina.errors import Timeout, Transient
from lamina.query.positions import LOOK_AGAIN_S, Positions, layer_service
from lamina.query.vectors import VectorLeg
from lamina.requests import Position, Settled
from lamina.runtime.following import due_now
from lamina.runtime.spec import Service
from lamina.runtime.views import space_subject
from lamina.store import Damaged

MAX_SETTLE_S = 24 * 3600.0


class Settling:
    """Of one query service, over the services that keep a view."""

    def __init__(
        self, bus: Bus, positions: Positions, vectors: VectorLeg, services: Mapping[str, Service[Any]]
    ) -> None:
        self._bus = bus
        self._positions = positions
        self._vectors = vectors
        self._services = services

    async def settled(self, space: str, request: Settled) -> Position:
        """Where the views stand once they have folded everything that was in the log when asked, and what was
        decided of it. `Timeout` says what is behind; what waits after a failure, or is dead, is not waited for."""
        names = request.layers if request.layers is not None else tuple(sorted(self._services))
        asked = [layer_service(name, tuple(self._services)) for name in names]
        services = self._in_order(asked)
        head = max(await self._head(space), request.min_seq)
        # Looked at once before the time counts: to wait 0 s for what is done already succeeds.
        seqs = await self._seqs(space, services, head)
        behind = await self._behind(space, seqs, head)
        embed = head > 0 and "vectors" in (request.layers or ())
        if not behind and not embed:
            return Position(seqs={name: seqs[name] for name in asked})
        try:
            async with asyncio.timeout(min(request.timeout_s, MAX_SETTLE_S)):
                for name in self._deciding(services):
                    await self._decided(space, name, head)
                    head = max(head, await self._head(space))  # with what was decided meanwhile
                for name in services:
                    if head:
                        seqs[name] = await self._positions.wait(space, name, head)
                if embed:
                    await self._embedded(space)
        except TimeoutError as error:
            behind = await self._behind(space, await self._seqs(space, services, head), head)
            why = ", ".join(behind) or f"vectors are being made ({self._vectors.embedding.why or 'the model works'})"
            raise Timeout(f"not settled within {request.timeout_s} s: {why}; see `lamina status`") from error
        return Position(seqs={name: seqs[name] for name in asked})

    def _in_order(self, names: Sequence[str]) -> list[str]:
        """These services, and before each those whose decisions it decides over."""
        found: dict[str, None] = {}

        def add(name: str) -> None:
            for earlier in self._services[name].after:
                if earlier in self._services and earlier not in found:
                    add(earlier)
            found[name] = None

        for name in names:
            add(name)
        return list(found)

    async def _head(self, space: str) -> int:
        last = await self._bus.last(space_subject(space))
        return last.seq if last else 0

    async def _seqs(self, space: str, services: Sequence[str], head: int) -> dict[str, int]:
        return {name: await self._positions.seq(space, name) if head else 0 for name in services}

    def _deciding(self, services: Sequence[str]) -> list[str]:
        return [name for name in services if self._services[name].decide is not None]

    async def _behind(self, space: str, seqs: Mapping[str, int], head: int) -> list[str]:
        """What is not folded, or not decided, in words."""
        found = [f"{name} at {seq} of {head}" for name, seq in seqs.items() if seq < head]
        for name in self._deciding(tuple(seqs)):
            if head and seqs[name] >= head and await self._due(space, name):
                found.append(f"{name} has decisions to make")
        return found

    async def _due(self, space: str, name: str) -> bool:
        now_us = time.time_ns() // 1000
        try:
            return await self._positions.read(space, name, lambda db: due_now(self._services[name], db, now_us))
        except (Damaged, Transient):
            return True  # a view that is being made again may hold anything

    async def _decided(self, space: str, name: str, head: int) -> None:
        """Return once a view has folded `head` and nothing is due in it."""
        while head:
            news = self._positions.news(space, name)
            if await self._positions.seq(space, name) >= head and not await self._due(space, name):
                return
            await self._news(space, name, news)

    async def _embedded(self, space: str) -> None:
        """Return once every text of the space has its vector; at once where none are made."""
        while True:
            news = self._positions.news(space, "vectors")
            with contextlib.suppress(Transient):  # the source may come back, the view may be made
                if await self._vectors.complete(space):
                    return
            await self._positions.touch(space, "vectors")
            await self._news(space, "vectors", news)

    async def _news(self, space: str, name: str, news: asyncio.Event) -> None:
        """Wait for a view to tell of something new, a moment at most: the news is best effort."""
        try:
            async with asyncio.timeout(LOOK_AGAIN_S):
                await news.wait()
        except TimeoutError:
            await self._positions.touch(space, name)
