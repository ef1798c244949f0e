"""How much of the evidence of real questions is among the first ten: keywords, vectors, RRF of both, and recall.

Every case is a journal of its own, written by the journal's fold; the legs and their fusion are the product's. Model
work is kept in a file outside of the repository, so that a second run takes seconds. `--cases`: so many of each set,
evenly spread. `newest_first`: of the questions whose answer changed, the share that has the newest turn of the
evidence above all older ones, by keywords and by recall.

usage: python -m benchmarks.recall_quality --cache FILE [--sets locomo,beam] [--cases 20]
"""

from __future__ import annotations

import hashlib
import importlib
import random
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import arguments, keep
from lamina import events, times
from lamina.config import EmbeddingConfig
from lamina.embedding import Vectors, chosen
from lamina.journal.fold import TABLES, State, fold, needs
from lamina.query.hybrid import hybrid
from lamina.query.keywords import search
from lamina.query.vectors import SCRIPTS, Near, even
from lamina.records import Where
from lamina.runtime import Add, Put, Recorded
from lamina.runtime.apply import Overlay
from lamina.store.driver import driver
from lamina.vectors.fold import passage, script

TOP = 10
POOL = 40
RRF_K = 60
BATCH = 16
RESAMPLES = 2_000
WAYS = ("keywords", "vectors", "rrf", "recall")
UPDATES = ("knowledge_update", "contradiction_resolution", "knowledge-update")


class Cache:
    """Vectors by the hash of their text, made where they are missing."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("CREATE TABLE IF NOT EXISTS v(h TEXT PRIMARY KEY, v BLOB)")
        make = chosen(EmbeddingConfig())
        assert make is not None, "no embedding model is installed"
        self._model = make()

    def vectors(self, kind: str, texts: Sequence[str]) -> Vectors:
        keys = {text: kind + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in texts}
        missing = [text for text in keys if self._get(keys[text]) is None]
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            rows = self._model.passages(part) if kind == "p" else np.stack([self._model.query(one) for one in part])
            pairs = [(keys[text], row.astype(np.float32).tobytes()) for text, row in zip(part, rows, strict=True)]
            self._db.executemany("INSERT OR IGNORE INTO v VALUES(?, ?)", pairs)
            self._db.commit()
        return np.stack([np.frombuffer(self._get(keys[text]) or b"", dtype=np.float32) for text in texts])

    def _get(self, key: str) -> bytes | None:
        row = self._db.execute("SELECT v FROM v WHERE h = ?", (key,)).fetchone()
        return row[0] if row else None


def journal(turns: Iterable[Any]) -> tuple[sqlite3.Connection, list[str]]:
    """The rows of a journal that holds these turns, and what of each is embedded."""
    db: sqlite3.Connection = driver.connect(":memory:", isolation_level=None)
    tables = {table.name: table for table in TABLES}
    for table in TABLES:
        for statement in table.ddl.split(";"):
            db.execute(statement)
    state, texts = State(), []
    overlay = Overlay(db, tables)
    for seq, (turn_id, session, speaker, said, when) in enumerate(turns, 1):
        known = speaker in events.ROLES
        role, name = (speaker, None) if known else ("user", speaker)
        data = events.TurnRecorded(role=role, text=said, name=name, turn_id=turn_id)
        event = events.make(data, id=f"e{seq}", space="bench", time=when, session=session)
        one = Recorded(seq=seq, at_us=seq, raw=events.encode(event), event=event, data=data)
        for table_name, key in needs(one):
            overlay.load(table_name, key)
        state, changes = fold(state, one, overlay)
        for change in changes:
            if isinstance(change, Put | Add):
                overlay.apply(change)
        texts.append(passage(name or role, said))
    overlay.write()
    return db, texts


def ways(
    db: sqlite3.Connection, question: str, now: datetime, rows: Vectors, groups: NDArray[Any], vector: Vectors
) -> Iterator[tuple[str, list[int]]]:
    """The first turns of each way."""
    cosines = even(rows @ vector, groups)
    seqs = np.arange(1, len(rows) + 1)
    near = Near(seqs, cosines, {int(seq): n for n, seq in enumerate(seqs)}, len(rows), rows, seqs - 1)
    ranking = search(db, question, Where(), POOL, now)
    keywords = [one.turn for one in ranking.ranked]
    vectors = [int(seqs[n]) for n in np.argsort(-cosines, kind="stable")[:200]]
    fused: dict[int, float] = defaultdict(float)
    for leg in (keywords, vectors):
        for place, turn in enumerate(leg, 1):
            fused[turn] += 1 / (RRF_K + place)
    yield "keywords", keywords
    yield "vectors", vectors
    yield "rrf", sorted(fused, key=lambda turn: (-fused[turn], turn))
    yield "recall", [one.turn for one in hybrid(db, ranking, near, question, Where())]


def newest_first(case: Any, turns: Sequence[int], gold: set[str]) -> float:
    """1 if the newest turn of the evidence stands above every other one of it."""
    order = {case.turns[turn - 1][0]: place for place, turn in enumerate(turns)}
    *older, newest = (turn[0] for turn in sorted(case.turns, key=lambda turn: turn[4]) if turn[0] in gold)
    return float(newest in order and all(order[newest] < order.get(one, len(order)) for one in older))


def measured(cases: Iterable[Any], cache: Cache) -> dict[str, dict[str, list[float]]]:
    """category -> way -> the share of the evidence found, question by question."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for case in cases:
        db, texts = journal(case.turns)
        rows = cache.vectors("p", texts)
        groups = np.array([SCRIPTS.index(script(text)) for text in texts])
        asked = cache.vectors("q", [question for question, *_ in case.questions])
        for (question, category, gold, now), vector in zip(case.questions, asked, strict=True):
            for way, turns in ways(db, question, times.aware(now), rows, groups, vector):
                share = len({case.turns[turn - 1][0] for turn in turns[:TOP]} & gold) / len(gold)
                found["ALL"][way].append(share)
                found[str(category)][way].append(share)
                if category in UPDATES and len(gold) > 1:
                    found["newest_first"][way].append(newest_first(case, turns, gold))
        db.close()
    return found


def compared(ours: Sequence[float], floor: Sequence[float]) -> dict[str, float]:
    """The gain over the floor in points, with the bounds of 95 % of paired resamples."""
    rng = random.Random(7)
    gains = [a - b for a, b in zip(ours, floor, strict=True)]
    means = sorted(sum(rng.choices(gains, k=len(gains))) / len(gains) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    return {"gain": round(100 * sum(gains) / len(gains), 1), "low": round(100 * low, 1), "high": round(100 * high, 1)}


def main() -> None:
    options = arguments(__doc__, cache="", sets="locomo,beam,memdaily,lme", cases=1_000_000, seed=5)
    if not options.cache:
        raise SystemExit("name a file outside of the repository with --cache")
    sys.path.insert(0, str(options.data.parent / "tools"))
    sets = importlib.import_module("recall_sets")
    cache = Cache(options.cache)
    figures: dict[str, Any] = {}
    newest: dict[str, Any] = {}
    for name in options.sets.split(","):
        cases = [case for case in sets.load(name, options.data) if case.questions]
        random.Random(options.seed).shuffle(cases)
        found = measured(cases[: options.cases], cache)
        if updates := found.pop("newest_first", None):
            newest[name] = {"n": len(updates["recall"])} | {
                way: round(100 * sum(updates[way]) / len(updates[way]), 1) for way in ("keywords", "recall")
            }
        figures[name] = {
            category: {
                "n": len(by_way["recall"]),
                **{way: round(100 * sum(by_way[way]) / len(by_way[way]), 1) for way in WAYS},
                "recall_over_keywords": compared(by_way["recall"], by_way["keywords"]),
            }
            for category, by_way in sorted(found.items())
        }
    keep("recall_quality", {"measure": "frac@10", "sets": figures, "newest_first": newest})


if __name__ == "__main__":
    main()
