"""What does the built-in extractor keep, how much of it is right, does recall gain by it, and how fast is it?

labelled: precision and recall on the labelled set (`tests/labels`), both halves. shares: atoms per 100 turns of
LoCoMo and of PersonaMem, and of the turns (PersonaMem: documents) that answer questions those that have an atom.
recall: the share of LoCoMo's evidence among the first ten, by turns alone and by turns and atoms. loop: turns per
processor second from the log to reconciled atoms. memory: what a process holds while 100,000 turns go by.

usage: python -m benchmarks.atoms [--data FOLDER] [--parts labelled,shares,recall,loop,memory] [--cases 2]
"""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, arguments, daemon, keep, rss_mb
from benchmarks.recall_quality import compared
from lamina.atoms.builtin import VERSION, extract
from lamina.atoms.turns import Turn
from lamina.client import Memory
from lamina.home import Home
from tests.support.atoms import AtomsBench
from tests.support.labels import LANGUAGES, load, score
from tests.support.toy import running

WINDOW = 5
TOP = 10
LOOP_TURNS = 3_000
MEMORY_TURNS = 100_000
TIME = "2023-05-08T12:00:00Z"
_SPOKEN = re.compile(r"^\[(USER|ASSISTANT)\] (?:User|Assistant): ", re.MULTILINE)


def labelled(options: Any) -> dict[str, Any]:
    del options
    return {half: _labelled(half) for half in ("tuned", "heldout")}


def _labelled(half: str) -> dict[str, Any]:
    scored = score(load(half), lambda conversation: extract(conversation.shown()))
    figures = {}
    for key in ("all", *LANGUAGES):
        tally = scored[key]
        figures[key] = {
            "atoms": tally.atoms,
            "precision": round(tally.precision, 3),
            "recall": round(tally.recall, 3),
            "type": round(tally.type_share, 3),
            "dated": round(tally.dated_share, 3),
            "dated_statements": tally.dated,
            "scope": round(tally.scope_share, 3),
            "polarity": round(tally.polarity_share, 3),
            "greetings": tally.greetings,
            "questions": tally.questions,
            "obeyed": tally.obeyed,
        }
    return figures


def locomo(data: Path) -> tuple[list[Turn], set[str]]:
    """The turns of LoCoMo and the ids of those that answer a question."""
    turns: list[Turn] = []
    gold: set[str] = set()
    for number, case in enumerate(json.loads(gzip.decompress((data / "locomo_a.json.gz").read_bytes()))):
        for name, said in case["conversation"].items():
            for one in said if isinstance(said, list) else ():
                id = f"{number}:{one['dia_id']}"
                turns.append(Turn(id=id, text=one["text"], time=TIME, name=one["speaker"], session=name))
        gold |= {f"{number}:{id}" for question in case["qa"] for id in question.get("evidence", ())}
    return turns, gold & {turn.id for turn in turns}


def personamem(data: Path) -> tuple[list[Turn], set[str]]:
    """The turns of PersonaMem's documents, `<document>#<n>`, and the documents that its questions name."""
    turns: list[Turn] = []
    for document in json.loads(gzip.decompress((data / "personamem_32k_documents_a.json.gz").read_bytes())):
        parts = _SPOKEN.split(document["content"])
        for n, (role, text) in enumerate(zip(parts[1::2], parts[2::2], strict=True)):
            turns.append(Turn(id=f"{document['id']}#{n}", text=text.strip(), time=TIME, role=role.lower()))
    queries = json.loads(gzip.decompress((data / "personamem_32k_queries_a.json.gz").read_bytes()))
    return turns, {id for query in queries for id in query["gold_ids"]}


def _shares(turns: Sequence[Turn], gold: set[str], unit: Callable[[str], str]) -> dict[str, Any]:
    start = time.process_time()
    found = [atom for at in range(0, len(turns), WINDOW) for atom in extract(turns[at : at + WINDOW])]
    seconds = time.process_time() - start
    held = {unit(source.id) for atom in found for source in atom.sources}
    return {
        "turns": len(turns),
        "turns_per_cpu_s": round(len(turns) / seconds),
        "atoms_per_100_turns": round(100 * len(found) / len(turns), 1),
        "gold": len(gold),
        "gold_with_an_atom": round(len(gold & held) / len(gold), 3),
    }


def shares(options: Any) -> dict[str, Any]:
    return {
        "locomo": _shares(*locomo(options.data), unit=lambda id: id),
        "personamem": _shares(*personamem(options.data), unit=lambda id: id.rpartition("#")[0]),
    }


def recall(options: Any) -> dict[str, Any]:
    os.environ["LAMINA_EMBEDDING_PROVIDER"] = "none"  # the daemon is a process of its own
    sys.path.insert(0, str(options.data.parent / "tools"))
    cases = [case for case in importlib.import_module("recall_sets").load("locomo", options.data) if case.questions]
    found = asyncio.run(_recalled(cases[: options.cases]))
    return {
        "set": "locomo",
        "cases": min(options.cases, len(cases)),
        "questions": len(found["l0"]),
        "frac@10": {layers: round(100 * sum(one) / len(one), 1) for layers, one in found.items()},
        "l0+l1_over_l0": compared(found["l0+l1"], found["l0"]),
    }


async def _recalled(cases: Sequence[Any]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"l0": [], "l0+l1": []}
    async with daemon() as (home, _):
        for number, case in enumerate(cases):
            async with Memory.open(space=f"case-{number}", home=home.path) as memory:
                for turn_id, session, speaker, said, when in case.turns:
                    await memory.turn("user", said, session=session, name=speaker, time=when, turn_id=turn_id)
                for session in dict.fromkeys(turn[1] for turn in case.turns):
                    await memory.end_session(session)
                await memory.settled(600)
                for question, _, gold, _ in case.questions:
                    for layers in found:
                        asked = await memory.recall(question, limit=TOP, layers=layers.split("+"), deadline_s=10)
                        ids = [id for item in asked.items for id in item.turn_ids]
                        found[layers].append(len(set(ids[:TOP]) & gold) / len(gold))
    return found


def loop(options: Any) -> dict[str, Any]:
    return asyncio.run(_loop(locomo(options.data)[0][:LOOP_TURNS]))


async def _loop(turns: Sequence[Turn]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
        home = Home(folder)
        home.prepare()
        bench = AtomsBench(home)
        for n, turn in enumerate(turns):
            await bench.say(turn.text, id=f"t{n}", session=turn.session, name=turn.name)
        for session in dict.fromkeys(turn.session for turn in turns):
            await bench.end(session)
        start = time.process_time()
        worker = bench.builtin()
        async with running(worker):
            while bench.counts().extracted != len(turns) or bench.counts().unreconciled:  # noqa: ASYNC110 - a view on disk
                await asyncio.sleep(0.2)
        seconds = time.process_time() - start
        atoms = bench.rows("SELECT count(*) FROM atoms")[0][0]
    return {"turns": len(turns), "atoms": atoms, "turns_per_cpu_s": round(len(turns) / seconds)}


def memory(options: Any) -> dict[str, Any]:
    turns, _ = locomo(options.data)
    held: dict[str, float] = {}
    for done in range(0, MEMORY_TURNS, WINDOW):
        at = done % (len(turns) - WINDOW)
        extract(turns[at : at + WINDOW])
        if done % (MEMORY_TURNS // 5) == 0:
            held[str(done)] = rss_mb(os.getpid())
    held[str(MEMORY_TURNS)] = rss_mb(os.getpid())
    return {"rss_mb_after_turns": held}


PARTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "labelled": labelled,
    "shares": shares,
    "recall": recall,
    "loop": loop,
    "memory": memory,
}


def main() -> None:
    options = arguments(__doc__, parts=",".join(PARTS), cases=2)
    kept = RESULTS / "atoms.json"
    before = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    figures: dict[str, Any] = {name: before[name] for name in PARTS if name in before}
    for name in options.parts.split(","):
        figures[name] = PARTS[name](options)
    keep("atoms", {"extractor": VERSION, **figures})


if __name__ == "__main__":
    main()
