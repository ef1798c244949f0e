"""PersonaMem without a model: which of four answers is best supported by what is remembered of the user?

A space a user, built of the dialogue alone: the persona header of each document is left out, and recall is held to
the documents of the question and, where one of them holds the question, to what was said before it. Choosers:

- `letter`: always the letter that is right most often; `random`: its expectation
- `bm25`: the answer with the best raw BM25 score against any one user turn
- `memory`: the same over what `Memory.recall` gives for each answer; where the user asks for something new, the
  answer that what is remembered supports least
- `reader` (`--reader http://host:port/v1 --model NAME`): an OpenAI-compatible model that is given what is recalled
  for the question

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
from lamina.client import Item, Memory, Where
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


async def remembered(memory: Memory, turns: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, tuple[str, int]]:
    """Tell the dialogues; event id of a user turn -> its document and place."""
    places: dict[str, tuple[str, int]] = {}
    for day, (name, said) in enumerate(turns.items()):
        for place, (role, text) in enumerate(said):
            time = f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T{place // 60:02d}:{place % 60:02d}:00+00:00"
            accepted = await memory.turn(role, text, session=name, time=time)
            if role == "user":
                places[accepted.id] = (name, place)
        await memory.end_session(name)
    await memory.settled(600.0)
    return places


async def recalled(memory: Memory, query: str, one: Mapping[str, Any], known: Mapping[str, Any]) -> list[Item]:
    """What memory gives for a text, of the documents of the question and of what was said before it alone."""
    where = Where(sessions=one["documents"])
    hits = await memory.recall(query, limit=2 * RECALLED, budget_tokens=40_000, deadline_s=20.0, where=where)
    return [item for item in hits.items if any(id in known for id in item.sources)][:RECALLED]


async def chosen(memory: Memory, one: Mapping[str, Any], index: Bm25, known: Mapping[str, int]) -> str:
    """The answer of most support; of least, where something new is asked for."""
    support: dict[str, float] = {}
    for letter, answer in one["options"].items():
        items = await recalled(memory, answer, one, known)
        turns = {known[id] for item in items for id in item.sources if id in known}
        support[letter] = index.best(terms(answer), sorted(turns))
    ranked = sorted(support, key=lambda letter: -support[letter])
    return ranked[-1] if "?" in one["text"] and _NEW.search(one["text"]) else ranked[0]


async def answered(memory: Memory, one: Mapping[str, Any], known: Mapping[str, int], url: str, model: str) -> str:
    """What a model picks, given what memory recalls for the question."""
    from openai import AsyncOpenAI

    items = await recalled(memory, one["text"], one, known)
    said = "\n".join(f"- {item.text}" for item in items)
    options = "\n".join(f"({letter}) {text}" for letter, text in one["options"].items())
    which = "Which answer fits this user best? Answer with its letter alone."
    ask = "\n\n".join((f"What the user said before:\n{said}", one["text"], options, which))
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
        for n, user in enumerate(users):
            ones = [one for one in asked if one["user"] == user]
            names = dict.fromkeys(name for one in ones for name in one["documents"])
            async with Memory.open(space=f"u{n}", home=home.path) as memory:
                places = await remembered(memory, {name: told[name] for name in names})
                for one in ones:
                    ends = {name: len(until(told[name], one["text"])) for name in one["documents"]}
                    before = [id for id, (name, place) in places.items() if place < ends.get(name, 0)]
                    known = {id: number for number, id in enumerate(before)}
                    index = Bm25([told[places[id][0]][places[id][1]][1] for id in before])
                    raw = max(one["options"], key=lambda letter: index.best(terms(one["options"][letter])))
                    picks = {"letter": letter, "bm25": raw, "memory": await chosen(memory, one, index, known)}
                    if options.reader:
                        picks["reader"] = await answered(memory, one, known, options.reader, options.model)
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
    keep("personamem", {"measure": "accuracy of the chosen answer, per cent", "users": len(users), "types": figures})


if __name__ == "__main__":
    asyncio.run(main())
