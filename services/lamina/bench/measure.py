"""Asking the questions, and what the answers are worth."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from lamina.bench.questions import Question
from lamina.bench.records import Way
from lamina.client import Memory
from lamina.records import Hits

DEADLINE_S = 5.0
BUDGET_TOKENS = 100_000


class Asked(Struct, frozen=True):
    """One answer: the place of the first piece of evidence (0: there is none), and how long it took."""

    place: int
    seconds: float
    status: str
    degraded: tuple[str, ...] = ()


async def ask(memory: Memory, question: Question, layers: Sequence[str], limit: int) -> Asked:
    """Ask once; the place is counted from 1."""
    start = time.perf_counter()
    hits = await memory.recall(
        question.question, limit=limit, budget_tokens=BUDGET_TOKENS, layers=layers, deadline_s=DEADLINE_S
    )
    took = time.perf_counter() - start
    return Asked(place(hits, question.evidence), took, hits.status, tuple(part.part for part in hits.degraded))


def place(hits: Hits, evidence: Iterable[str]) -> int:
    """Where the first item stands that rests on a piece of the evidence; 0 where none does."""
    wanted = set(evidence)
    for number, item in enumerate(hits.items, 1):
        if not wanted.isdisjoint((item.id, *item.sources, *item.turn_ids)):
            return number
    return 0


def summed(layers: Sequence[str], answers: Sequence[Asked]) -> Way:
    """The figures of all answers of one way; there is at least one."""
    count = len(answers)

    def within(most: int) -> float:
        return round(sum(0 < one.place <= most for one in answers) / count, 4)

    seconds = sorted(one.seconds for one in answers)
    return Way(
        layers=tuple(layers),
        first=within(1),
        first_5=within(5),
        first_10=within(10),
        mrr=round(sum(1 / one.place for one in answers if one.place) / count, 4),
        p50_ms=round(1e3 * seconds[math.ceil(0.5 * count) - 1], 3),
        p99_ms=round(1e3 * seconds[math.ceil(0.99 * count) - 1], 3),
        unavailable=sum(one.status == "unavailable" for one in answers),
        degraded=dict(Counter(part for one in answers for part in set(one.degraded))),
    )
