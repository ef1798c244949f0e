"""What does a durable publish cost, next to a raw JetStream publish of the same bytes in the same run?

One by one and 256 in flight, `sync_interval: always`; flat from the first thousand events to the millionth; and
how long from accepted to searchable.

usage: python -m benchmarks.publish [--events 100000]
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import nats

from benchmarks.common import arguments, bus, daemon, keep, quantiles
from lamina import events, ids, times
from lamina.bus import Outgoing
from lamina.bus.server import read_credentials
from lamina.client import Memory
from lamina.home import Home

TEXT = "We keep the orders in PostgreSQL 16, and every migration goes through a review by two people first. " * 3
ROUNDS, PER_ROUND, IN_FLIGHT, TOGETHER = 6, 300, 256, 4096
SPACE = "bench"


def envelope() -> tuple[str, bytes, str]:
    """Subject, bytes and id of one turn, as the client makes them."""
    id = ids.uuid7()
    data = events.TurnRecorded(role="user", text=TEXT)
    event = events.make(data, id=id, space=SPACE, time=times.aware(None), session="s")
    return ids.event_subject(SPACE, "turn.recorded"), events.encode(event), id


async def raw_connection(home: Home) -> tuple[Any, Any]:
    runtime = home.runtime()
    assert runtime is not None
    known = read_credentials(Path(runtime.credentials))
    connection = await nats.connect(runtime.url, user=known.user, password=known.password)
    return connection, connection.jetstream()


async def one_by_one(publish: Callable[[], Awaitable[Any]], n: int) -> list[float]:
    took = []
    for _ in range(n):
        start = time.perf_counter()
        await publish()
        took.append(time.perf_counter() - start)
    return took


async def in_flight(publish: Callable[[], Awaitable[Any]], n: int) -> float:
    """Events a second with `IN_FLIGHT` under way."""
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one() -> None:
        async with gate:
            await publish()

    start = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(n)))
    return n / (time.perf_counter() - start)


async def side_by_side() -> dict[str, Any]:
    """Rounds of both, in turn, on one server with nothing else running on it."""
    ours: list[float] = []
    raw: list[float] = []
    flights: dict[str, list[float]] = {"lamina": [], "raw": []}
    async with daemon("query") as (home, _), Memory.open(space=SPACE, home=home.path) as memory:
        connection, stream = await raw_connection(home)

        prepared = [envelope() for _ in range(ROUNDS * (PER_ROUND + TOGETHER))]

        async def raw_publish() -> None:
            subject, data, id = prepared.pop()
            await stream.publish(subject, data, headers={"Nats-Msg-Id": id})

        def publish() -> Awaitable[Any]:
            return memory.turn("user", TEXT, session="s")

        for _ in range(ROUNDS):
            raw += await one_by_one(raw_publish, PER_ROUND)
            ours += await one_by_one(publish, PER_ROUND)
            flights["raw"].append(await in_flight(raw_publish, TOGETHER))
            flights["lamina"].append(await in_flight(publish, TOGETHER))
        await connection.close()
    return {
        "one_by_one": {
            "raw": {**quantiles(raw), "per_s": round(len(raw) / sum(raw))},
            "lamina": {**quantiles(ours), "per_s": round(len(ours) / sum(ours))},
            "share_of_raw": round(sum(raw) / sum(ours), 3),
        },
        f"{IN_FLIGHT}_in_flight": {name: round(sum(rates) / len(rates)) for name, rates in flights.items()},
    }


async def flat(most: int) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """One by one at 1k, 10k, ... events in the stream; the events between are published in batches."""
    async with daemon("query") as (home, _), Memory.open(space=SPACE, home=home.path) as memory:
        link = await bus(home)
        stored, mark = 0, 1_000
        while mark <= most:
            while stored < mark:
                batch = [Outgoing(*envelope()[:2]) for _ in range(min(500, mark - stored))]
                await link.publish_batch(batch)
                stored += len(batch)
            took = await one_by_one(lambda: memory.turn("user", TEXT, session="s"), PER_ROUND)
            stored += PER_ROUND
            yield str(mark), {**quantiles(took), "per_s": round(len(took) / sum(took))}
            mark *= 10
        await link.close()


async def searchable() -> dict[str, Any]:
    """From accepted to found, with every service running."""
    took = []
    async with daemon() as (home, _), Memory.open(space=SPACE, home=home.path) as memory:
        for n in range(300):
            accepted = await memory.turn("user", f"{TEXT} marker{n}", session="s")
            start = time.perf_counter()
            hits = await memory.recall(f"marker{n}", min_seq=accepted.seq, limit=1)
            took.append(time.perf_counter() - start)
            assert hits.items, hits
            assert f"marker{n}" in hits.items[0].text
    return quantiles(took)


async def main() -> None:
    options = arguments(__doc__, events=100_000)
    figures: dict[str, Any] = {"bytes_per_event": len(envelope()[1])}
    figures |= await side_by_side()
    keep("publish", figures, done=False)
    figures["accepted_to_searchable"] = await searchable()
    marks = figures["one_by_one_at_events"] = {}
    async for mark, measured in flat(options.events):
        marks[mark] = measured
        keep("publish", figures, done=False)
    keep("publish", figures)


if __name__ == "__main__":
    asyncio.run(main())
