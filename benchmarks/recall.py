"""How long does a recall take with 1k, 10k and 100k real turns in a space, how much memory, and 16 at once?

Each number of turns is a space of its own in one home. Recall is asked in this process, warm, against the daemon's
log and views: by keywords alone, by both legs where the question's vector is known already, and by both legs with the
model asked for it. `at_once` starts 16 recalls together: `wall_ms` until the last has its answer, `cores_share_ms`
the processor time of 16 divided by the cores. `client` is a whole request over the bus to the daemon, by keywords.
Turns are LongMemEval's (the copies told apart by a number), the questions LongMemEval's and LoCoMo's. Vectors of
turns are drawn by chance, since no comparison takes longer for what it compares; those of questions are the model's.

usage: python -m benchmarks.recall [--sizes 1000,10000,100000]
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.common import arguments, bus, daemon, keep, quantiles, real_turns, rss_mb
from lamina import events, ids, times
from lamina.bus import Outgoing
from lamina.client import Memory
from lamina.config import EmbeddingConfig
from lamina.embedding import Embedding, Vectors, chosen
from lamina.home import Home
from lamina.query.positions import Positions
from lamina.query.recall import recall
from lamina.query.vectors import VectorLeg
from lamina.records import Hits
from lamina.requests import Recall
from lamina.runtime.embedcache import EmbedCache, cache_path
from lamina.runtime.views import space_subject

SERVICES = ("journal", "vectors", "persona", "query")
WARM, ASKED, ROUNDS = 20, 200, 10
BATCH = 500
AT_ONCE = 16
DEADLINE_S = 30.0


class Known(Embedding):
    """A model that knows the vectors of all questions already."""

    def __init__(self, identity: str, vectors: Mapping[str, Vectors]) -> None:
        super().__init__(chosen(EmbeddingConfig()))
        self._identity, self._vectors = identity, vectors

    async def identity(self) -> str:
        return self._identity

    async def query(self, text: str) -> tuple[str, Vectors]:
        return self._identity, self._vectors[text]


def questions(data: Path) -> list[str]:
    """LongMemEval's questions and LoCoMo's, in turn."""
    found: list[str] = []
    for path in sorted(data.glob("longmemeval_s_*.jsonl.gz")):
        with gzip.open(path, "rb") as file:
            found += [msgspec.json.decode(line)["question"] for line in file]
    for path in sorted(data.glob("locomo_*.json.gz")):
        rows = msgspec.json.decode(gzip.decompress(path.read_bytes()))
        found += [one["question"] for row in rows for one in islice(row["qa"], 60)]
    return list(dict.fromkeys(found))[: WARM + ASKED]


def endless(turns: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """The turns again and again, each copy with its number, so that no two texts are one."""
    for copy in count():
        for session, role, text in turns:
            yield (f"{session}-{copy}", role, f"({copy}) {text}") if copy else (session, role, text)


def outgoing(space: str, session: str, role: str, text: str) -> Outgoing:
    data = events.TurnRecorded(role=role if role in events.ROLES else "user", text=text or "-")
    event = events.make(data, id=ids.uuid7(), space=space, time=times.aware(None), session=session)
    return Outgoing(ids.event_subject(space, "turn.recorded"), events.encode(event))


async def filled(link: Any, home: Home, space: str, size: int, turns: Sequence[tuple[str, str, str]]) -> None:
    """A space with so many turns, folded."""
    waiting = islice(endless(turns), size)
    while batch := list(islice(waiting, BATCH)):
        await link.publish_batch([outgoing(space, *turn) for turn in batch])
    last = await link.last(space_subject(space))
    positions = Positions(link, home)
    for service in SERVICES[:3]:
        await positions.wait(space, service, last.seq)
    await positions.close()


async def drawn(home: Home, space: str, identity: str, dims: int) -> None:
    """A vector by chance for every text of a space."""
    root = home.spaces / space
    view = sqlite3.connect(root / "views" / "vectors.db")
    hashes = [row[0] for row in view.execute("SELECT DISTINCT hash FROM texts")]
    view.close()
    chance = np.random.default_rng(1)
    cache = EmbedCache(root, identity)
    await cache.open()
    for start in range(0, len(hashes), BATCH):
        part = hashes[start : start + BATCH]
        rows = chance.normal(size=(len(part), dims)).astype(np.float32)
        await cache.put(part, rows / np.linalg.norm(rows, axis=1, keepdims=True))
    await cache.close()
    assert cache_path(root, identity).exists()


async def timed(ask: Callable[[str], Awaitable[Hits]], asked: Sequence[str]) -> dict[str, float]:
    """One question after another; the first ones warm it up."""
    took, work = [], []
    for n, question in enumerate(asked):
        start, spent = time.perf_counter(), time.process_time()
        hits = await ask(question)
        if n >= WARM:
            took.append(time.perf_counter() - start)
            work.append(time.process_time() - spent)
        assert hits.status != "unavailable", hits.degraded
        assert not hits.degraded, hits.degraded
    return quantiles(took) | {"cpu_p50_ms": quantiles(work)["p50_ms"]}


async def at_once(ask: Callable[[str], Awaitable[Hits]], asked: Sequence[str], cpu_ms: float) -> dict[str, float]:
    """Sixteen questions together, several times."""
    walls = []
    for n in range(ROUNDS):
        start = time.perf_counter()
        await asyncio.gather(*(ask(asked[(n * AT_ONCE + k) % len(asked)]) for k in range(AT_ONCE)))
        walls.append(1e3 * (time.perf_counter() - start))
    cores = os.cpu_count() or 1
    return {
        "wall_ms": round(statistics.median(walls), 1),
        "cores_share_ms": round(AT_ONCE * cpu_ms / cores, 1),
        "cores": cores,
    }


@contextlib.asynccontextmanager
async def asking(
    home: Home, link: Any, space: str, embedding: Embedding | None
) -> AsyncIterator[Callable[[str], Awaitable[Hits]]]:
    """Recall of one space in this process, with what it keeps open."""
    positions = Positions(link, home)
    leg = VectorLeg(home, positions, embedding) if embedding is not None else None

    async def ask(question: str) -> Hits:
        return await recall(positions, space, Recall(query=question, layers=("l0",), deadline_s=DEADLINE_S), leg)

    try:
        yield ask
    finally:
        await positions.close()


async def measured(
    home: Home, link: Any, space: str, asked: Sequence[str], ways: Mapping[str, Callable[[], Embedding | None]]
) -> dict[str, Any]:
    """The figures of one space."""
    figures: dict[str, Any] = {"rss_mb_before": rss_mb(os.getpid())}
    for way, embedding in ways.items():
        async with asking(home, link, space, embedding()) as ask:
            figures[way] = await timed(ask, asked)
        async with asking(home, link, space, embedding()) as ask:  # a model knows what it was asked before
            await ask(asked[0])
            figures[way]["at_once"] = await at_once(ask, asked[WARM:], figures[way]["cpu_p50_ms"])
        figures[way]["rss_mb"] = rss_mb(os.getpid())
    async with Memory.open(space=space, home=home.path) as memory:
        figures["client"] = await timed(
            lambda question: memory.recall(question, layers=["l0"], deadline_s=DEADLINE_S), asked
        )
    return figures


async def known_and_asked(asked: Sequence[str]) -> tuple[str, int, dict[str, Callable[[], Embedding | None]]]:
    """The ways to ask, with the identity and the width of the model."""
    model = fresh()
    found = {question: await model.query(question) for question in asked}
    identity, vector = next(iter(found.values()))
    known = Known(identity, {question: one for question, (_, one) in found.items()})
    return (
        identity,
        len(vector),
        {
            "keywords": lambda: None,
            "hybrid_vector_known": lambda: known,
            "hybrid": fresh,
        },
    )


def fresh() -> Embedding:
    return Embedding(chosen(EmbeddingConfig()))


async def main() -> None:
    options = arguments(__doc__, sizes="1000,10000,100000")
    asked, turns = questions(options.data), real_turns(options.data)
    identity, dims, ways = await known_and_asked(asked)
    os.environ["LAMINA_EMBEDDING_PROVIDER"] = "none"  # of the daemon: here the vectors are drawn
    marks: dict[str, Any] = {}
    async with daemon(",".join(SERVICES)) as (home, pid):
        link = await bus(home)
        for size in map(int, options.sizes.split(",")):
            await filled(link, home, f"turns-{size}", size, turns)
            await drawn(home, f"turns-{size}", identity, dims)
            marks[str(size)] = await measured(home, link, f"turns-{size}", asked, ways)
            marks[str(size)]["daemon_rss_mb"] = rss_mb(pid)
            keep("recall", {"recall_at_turns": marks}, done=len(marks) == len(options.sizes.split(",")))
        await link.close()


if __name__ == "__main__":
    asyncio.run(main())
