"""PersonaMem without a model: which of four answers is best supported by what is remembered of the user?

The memory of a space is built of the dialogue alone: the persona header of each document is left out, and of the
document that holds the question everything from the question on. Choosers:

- `letter`: always the letter that is right most often; `random`: its expectation
- `bm25`: the answer with the best raw BM25 score against any one user turn
- `memory`: the same over what `Memory.recall` gives for each answer; where the user asks for something new, the
  answer that what is remembered supports least
- `reader` (`--reader http://host:port/v1 --model NAME`): an OpenAI-compatible model that is given the prompt block
  and what is recalled for the question

    python benchmarks/personamem.py [--users 2] [--reader URL --model NAME]
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, daemon, keep
from lamina.client import Memory
from lamina.text import terms

LETTERS = "abcd"
RESAMPLES = 2_000
K1, B = 1.2, 0.75
RECALLED = 12
_MARK = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] (?:User: |Assistant: )?")
_OPTION = re.compile(r"\n\(([abcd])\) ")
# What is asked for is new by the words of the question itself; nothing is known here of the types of questions.
_NEW = re.compile(
    r"\b(?:new|fresh)\s+(?:\w+\s+){0,3}?(?:ways?|ideas?|pursuits?|activit\w+|hobb\w+|things?|approach\w*|experiences?|"
    r"perspectives?|methods?)\b|\bsomething new\b|\bexplor\w+ new\b",
    re.IGNORECASE,
)


class Bm25:
    """Raw BM25 over some texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [Counter(terms(text)) for text in texts]
        self._sizes = [sum(one.values()) for one in self._texts]
        self._mean = sum(self._sizes) / max(1, len(texts))
        self._in = Counter(word for one in self._texts for word in one)

    def best(self, words: Sequence[str], among: Sequence[int] | None = None) -> float:
        """The best score of any text, or of any of these."""
        return max(
            (self._score(words, n) for n in (range(len(self._texts)) if among is None else among)), default=0.0
        )

    def _score(self, words: Sequence[str], n: int) -> float:
        counts, length = self._texts[n], K1 * (1 - B + B * self._sizes[n] / self._mean)
        return sum(
            math.log(1 + (len(self._texts) - self._in[word] + 0.5) / (self._in[word] + 0.5))
            * counts[word]
            * (K1 + 1)
            / (counts[word] + length)
            for word in words
            if word in counts
        )


def dialogues(data: Path) -> dict[str, list[tuple[str, str]]]:
    """Document -> (role, text) of its turns, without the header."""
    with gzip.open(data / "personamem_32k_documents_a.json.gz", "rt") as file:
        documents = json.load(file)
    found = {}
    for one in documents:
        text, marks = one["content"], list(_MARK.finditer(one["content"]))
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        turns = [(mark[1].lower(), text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
        found[one["id"]] = [turn for turn in turns if turn[0] != "system"]
    return found


def questions(data: Path) -> list[dict[str, Any]]:
    with gzip.open(data / "personamem_32k_queries_a.json.gz", "rt") as file:
        raw = json.load(file)
    found = []
    for one in raw:
        text, *parts = _OPTION.split(one["query"])
        found.append(
            {
                "user": one["user_id"],
                "type": one["meta"]["question_type"],
                "text": text.removeprefix("User: ").split("\n\n", 1)[-1].strip(),
                "options": dict(zip(parts[::2], parts[1::2], strict=True)),
                "gold": one["gold_answers"][1],
                "documents": tuple(one["gold_ids"]),
            }
        )
    return found


def until(turns: Sequence[tuple[str, str]], question: str) -> Sequence[tuple[str, str]]:
    """What was said before the question, where the document goes on with it."""
    start = question[:60]
    return turns[: next((n for n, (_, text) in enumerate(turns) if start in text), len(turns))]


async def remembered(memory: Memory, turns: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, int]:
    """Tell the dialogues; event id -> the number of its user turn."""
    numbers: dict[str, int] = {}
    for day, (name, said) in enumerate(turns.items()):
        for minute, (role, text) in enumerate(said):
            time = f"2026-01-{day + 1:02d}T{minute // 60:02d}:{minute % 60:02d}:00+00:00"
            accepted = await memory.turn(role, text, session=name, time=time, turn_id=f"{name}:{minute}")
            if role == "user":
                numbers[accepted.id] = len(numbers)
        await memory.end_session(name)
    await memory.settled(300.0)
    return numbers


async def chosen(memory: Memory, one: Mapping[str, Any], index: Bm25, numbers: Mapping[str, int]) -> str:
    """The answer of most support; of least, where something new is asked for."""
    support: dict[str, float] = {}
    for letter, answer in one["options"].items():
        hits = await memory.recall(answer, limit=RECALLED, budget_tokens=20_000, deadline_s=20.0)
        turns = {numbers[id] for item in hits.items for id in item.sources if id in numbers}
        support[letter] = index.best(terms(answer), sorted(turns))
    ranked = sorted(support, key=lambda letter: -support[letter])
    return ranked[-1] if "?" in one["text"] and _NEW.search(one["text"]) else ranked[0]


async def answered(memory: Memory, one: Mapping[str, Any], url: str, model: str) -> str:
    """What a model picks, given what memory puts before it."""
    from openai import AsyncOpenAI

    block = (await memory.prompt()).stable
    hits = await memory.recall(one["text"], limit=RECALLED, budget_tokens=3_000, deadline_s=20.0, format="prompt")
    options = "\n".join(f"({letter}) {text}" for letter, text in one["options"].items())
    which = "Which answer fits this user best? Answer with its letter alone."
    ask = "\n\n".join((block, hits.text, one["text"], options, which))
    async with AsyncOpenAI(base_url=url, api_key=os.environ.get("READER_API_KEY", "none")) as client:
        answer = await client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": ask}], temperature=0
        )
    found = re.search(r"[abcd]", (answer.choices[0].message.content or "").lower())
    return found[0] if found else ""


def share(right: Sequence[float]) -> dict[str, float]:
    """Per cent, with the bounds of 95 % of resamples."""
    rng = random.Random(7)
    means = sorted(sum(rng.choices(right, k=len(right))) / len(right) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    return {
        "accuracy": round(100 * sum(right) / len(right), 1),
        "low": round(100 * low, 1),
        "high": round(100 * high, 1),
    }


def gain(ours: Sequence[float], floor: Sequence[float]) -> dict[str, float]:
    """The gain in points, with the bounds of 95 % of paired resamples."""
    found = share([(a - b) for a, b in zip(ours, floor, strict=True)])
    return {"points": found["accuracy"], "low": found["low"], "high": found["high"]}


async def main() -> None:
    options = arguments(__doc__, users=1_000, reader="", model="")
    told, asked = dialogues(options.data), questions(options.data)
    users = list(dict.fromkeys(one["user"] for one in asked))[: options.users]
    letter = Counter(one["gold"] for one in asked).most_common(1)[0][0]
    right: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    os.environ["LAMINA_EMBEDDING_PROVIDER"] = "none"
    async with daemon() as (home, _):
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        for one in asked:
            if one["user"] in users:
                turns = {name: until(told[name], one["text"]) for name in one["documents"]}
                groups[one["user"], tuple((name, len(said)) for name, said in turns.items())].append(one)
        for n, ((_, sizes), ones) in enumerate(groups.items()):
            turns = {name: told[name][:size] for name, size in sizes}
            index = Bm25([text for said in turns.values() for role, text in said if role == "user"])
            async with Memory.open(space=f"u{n}", home=home.path) as memory:
                numbers = await remembered(memory, turns)
                for one in ones:
                    raw = max(one["options"], key=lambda letter: index.best(terms(one["options"][letter])))
                    picks = {"letter": letter, "bm25": raw, "memory": await chosen(memory, one, index, numbers)}
                    if options.reader:
                        picks["reader"] = await answered(memory, one, options.reader, options.model)
                    for name in ("ALL", one["type"]):
                        right[name]["random"].append(1 / len(LETTERS))
                        for chooser, pick in picks.items():
                            right[name][chooser].append(float(pick == one["gold"]))
    figures = {
        name: {
            "n": len(by["memory"]),
            **{chooser: share(values) for chooser, values in by.items()},
            "memory_over_bm25": gain(by["memory"], by["bm25"]),
        }
        for name, by in sorted(right.items())
    }
    keep(
        "personamem", {"measure": "accuracy of the chosen answer, per cent", "spaces": len(groups), "types": figures}
    )


if __name__ == "__main__":
    asyncio.run(main())
