"""What does the built-in extractor keep, how much of it is right, and how fast is it?

Precision and recall on the labelled set (`tests/labels`), both halves; atoms per 100 turns, turns per second on one
core, and the share of the turns that answer a LoCoMo question that have an atom.

usage: python -m benchmarks.atoms [--data FOLDER]
"""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

from benchmarks.common import arguments, keep
from lamina.atoms.builtin import VERSION, extract
from lamina.atoms.turns import Turn
from tests.support.labels import LANGUAGES, load, score

WINDOW = 5


def labelled(half: str) -> dict[str, Any]:
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
            "greetings": tally.greetings,
            "questions": tally.questions,
            "obeyed": tally.obeyed,
        }
    return figures


def main() -> None:
    options = arguments(__doc__)
    figures: dict[str, Any] = {"extractor": VERSION, "tuned": labelled("tuned"), "heldout": labelled("heldout")}
    turns, gold = [], set()
    for number, case in enumerate(json.loads(gzip.decompress((options.data / "locomo_a.json.gz").read_bytes()))):
        conversation = case["conversation"]
        for name, said in conversation.items():
            if isinstance(said, list):
                time_of = "2023-05-08T12:00:00Z"
                turns += [
                    Turn(
                        id=f"{number}:{one['dia_id']}",
                        text=one["text"],
                        time=time_of,
                        name=one["speaker"],
                        session=name,
                    )
                    for one in said
                ]
        gold |= {f"{number}:{id}" for question in case["qa"] for id in question.get("evidence", ())}
    start = time.perf_counter()
    found = [atom for at in range(0, len(turns), WINDOW) for atom in extract(turns[at : at + WINDOW])]
    seconds = time.perf_counter() - start
    held = {source.id for atom in found for source in atom.sources}
    there = gold & {turn.id for turn in turns}
    figures["locomo"] = {
        "turns": len(turns),
        "turns_per_s": round(len(turns) / seconds),
        "atoms_per_100_turns": round(100 * len(found) / len(turns), 1),
        "gold_turns": len(there),
        "gold_turns_with_an_atom": round(len(there & held) / len(there), 3),
    }
    keep("atoms", figures)


if __name__ == "__main__":
    main()
