"""How long does a keyword recall take with 1k, 10k and 100k real turns in one space?

The journal and the query service alone run: what is derived of turns is not searched, and takes no time.
Timed twice: in the client (request, answer and all) and in the query service alone (a request answered by the same
code in this process, on the same view). Questions are LongMemEval's own.

usage: python -m benchmarks.recall [--turns 100000]
"""

from __future__ import annotations

import asyncio
import gzip
import time
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.common import arguments, bus, daemon, keep, quantiles, real_turns, rss_mb
from lamina import events, ids, times
from lamina.bus import Outgoing
from lamina.client import Memory
from lamina.query.positions import Positions
from lamina.query.recall import recall
from lamina.requests import Recall

SPACE = "bench"
WARM, ASKED = 20, 200
BATCH = 500


def questions(data: Path) -> list[str]:
    """LongMemEval's questions and LoCoMo's, in turn."""
    found: list[str] = []
    for path in sorted(data.glob("longmemeval_s_*.jsonl.gz")):
        with gzip.open(path, "rb") as file:
            found += [msgspec.json.decode(line)["question"] for line in file]
    for path in sorted(data.glob("locomo_*.json.gz")):
        rows = msgspec.json.decode(gzip.decompress(path.read_bytes()))
        found += [one["question"] for row in rows for one in islice(row["qa"], 60)]
    return found[: WARM + ASKED]


def outgoing(session: str, role: str, text: str) -> Outgoing:
    data = events.TurnRecorded(role=role if role in events.ROLES else "user", text=text or "-")
    event = events.make(data, id=ids.uuid7(), space=SPACE, time=times.aware(None), session=session)
    return Outgoing(ids.event_subject(SPACE, "turn.recorded"), events.encode(event))


async def main() -> None:
    options = arguments(__doc__, turns=100_000)
    asked = questions(options.data)
    marks: dict[str, Any] = {}
    async with daemon("journal,query") as (home, pid), Memory.open(space=SPACE, home=home.path) as memory:
        link = await bus(home)
        positions = Positions(link, home)
        turns = iter(real_turns(options.data))
        stored, mark = 0, 1_000
        while mark <= options.turns:
            while stored < mark and (batch := list(islice(turns, min(BATCH, mark - stored)))):
                await link.publish_batch([outgoing(*turn) for turn in batch])
                stored += len(batch)
            if stored < mark:
                turns = iter(real_turns(options.data))  # the same turns once more: twice as many finds a word
                continue
            await memory.settled(600, layers=["l0"])
            marks[str(mark)] = await measured(memory, positions, asked) | {"daemon_rss_mb": rss_mb(pid)}
            keep("recall", {"keyword_recall_at_turns": marks}, done=False)
            mark *= 10
        await positions.close()
        await link.close()
    keep("recall", {"keyword_recall_at_turns": marks})


async def measured(memory: Memory, positions: Positions, asked: list[str]) -> dict[str, Any]:
    client, service = [], []
    for n, question in enumerate(asked):
        start = time.perf_counter()
        hits = await memory.recall(question, deadline_s=10)
        took = time.perf_counter() - start
        assert hits.status != "unavailable", hits
        start = time.perf_counter()
        await recall(positions, SPACE, Recall(query=question, deadline_s=10))
        inside = time.perf_counter() - start
        if n >= WARM:
            client.append(took)
            service.append(inside)
    return {"client": quantiles(client), "service": quantiles(service)}


if __name__ == "__main__":
    asyncio.run(main())
