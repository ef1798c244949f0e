"""Do scenarios gather what belongs together, and does a new session cost the same however much there is already?

Gathering: LoCoMo and LifeBench, imported as anyone would, without vectors and without a model. Two atoms of one
scenario (or of one of its episodes) are right when their sources have the same gold label: the session in LoCoMo, the
event in LifeBench (without labels of 20 records and more, which mark no event). Baselines cut the same atoms where
nobody spoke for a while. For LoCoMo also: of the turns that answer one question together, how many pairs are in one
scenario.

Growth: 200 sessions, one a day, twenty days to a project, with words as frequent as words are (Zipf), and the same in
one project: statements and milliseconds of the decision and its fold for each, with a picture
(benchmarks/results/scenarios-20.svg and -200.svg).

usage: python -m benchmarks.scenarios [--data FOLDER] [--sets locomo,lifebench_en,lifebench_zh,growth]
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, arguments, daemon, keep
from lamina.client import Memory
from lamina.home import Home
from lamina.importer.formats.lifebench import LifeBenchReader
from lamina.importer.reading import Document
from lamina.importer.records import Source, Turn
from lamina.store.driver import connect
from tests.support.scenarios import Said, Sim

PAUSES_S = (60, 300, 600, 1_800, 3_600, 6 * 3_600, 24 * 3_600)
MOST_OF_AN_EVENT = 20
SETS = ("locomo", "lifebench_en", "lifebench_zh", "growth")
SESSIONS, FACTS, WORDS = 200, 8, 7
DAY_S = 86_400

Atoms = Sequence[tuple[str, int, str, str]]
"""(turn id, time in microseconds, scenario, episode)."""


def members(home: Home, space: str) -> list[tuple[str, int, str, str]]:
    """Every atom that is in a scenario, with the caller's id of its first turn."""
    views = home.spaces / space / "views"
    db: sqlite3.Connection = connect((views / "scenarios.db").resolve(), readonly=True)
    journal: sqlite3.Connection = connect((views / "journal.db").resolve(), readonly=True)
    turn_ids = dict(journal.execute("SELECT id, turn_id FROM turns"))
    rows = db.execute(
        "SELECT a.sources, a.time_us, e.scenario, e.id FROM atoms a JOIN episodes e ON e.id = a.episode"
    ).fetchall()
    journal.close()
    db.close()
    return [(turn_ids[json.loads(row[0])[0]], *row[1:]) for row in rows]


def pairs(groups: Iterable[Hashable], labels: Sequence[str]) -> dict[str, float]:
    """Precision and recall of being in one group, by having one label."""
    both, by_group = Counter(zip(groups, labels, strict=True)), Counter[Hashable]()
    for (group, _), n in both.items():
        by_group[group] += n
    right = sum(n * (n - 1) // 2 for n in both.values())
    said = sum(n * (n - 1) // 2 for n in by_group.values())
    true = sum(n * (n - 1) // 2 for n in Counter(labels).values())
    precision, recall = right / said if said else 1.0, right / true if true else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    figures = {"precision": precision, "recall": recall, "f1": f1}
    return {**{name: round(value, 3) for name, value in figures.items()}, "groups": len(by_group), "pairs": said}


def windows(times: Sequence[int], pause_s: int) -> list[int]:
    """The number of the time window of each atom."""
    order = sorted(range(len(times)), key=times.__getitem__)
    numbers, number, last = [0] * len(times), 0, times[order[0]] if order else 0
    for at in order:
        number += times[at] - last > pause_s * 1_000_000
        numbers[at], last = number, times[at]
    return numbers


def gathered(atoms: Atoms, label_of: Mapping[str, str]) -> dict[str, Any]:
    known = [one for one in atoms if one[0] in label_of]
    labels = [label_of[one[0]] for one in known]
    return {
        "atoms": len(known),
        "scenarios": pairs([one[2] for one in known], labels),
        "episodes": pairs([one[3] for one in known], labels),
        "time_windows": {
            f"{pause} s": pairs(windows([one[1] for one in known], pause), labels) for pause in PAUSES_S
        },
    }


async def imported(path: Path) -> tuple[dict[str, list[tuple[str, int, str, str]]], float]:
    """The atoms of a log that was imported, and how long that took in seconds."""
    async with daemon("journal,atoms,scenarios,query") as (home, _):
        start = time.perf_counter()
        command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "--space", "bench", "import"]
        run = await asyncio.to_thread(
            subprocess.run, [*command, str(path), "--wait", "l0"], capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise SystemExit(run.stderr[-2_000:])
        async with Memory.open(space="bench", home=home.path) as memory:
            await memory.settled(3_600, layers=["l2"])
        return {"bench": members(home, "bench")}, time.perf_counter() - start


async def lifebench(data: Path, language: str) -> dict[str, Any]:
    path = data / f"lifebench_{language}_records_a.jsonl.gz"
    reader, label_of = LifeBenchReader("x"), dict[str, str]()
    for number, line in enumerate(gzip.decompress(path.read_bytes()).splitlines()):
        value = json.loads(line)
        event = str(value["rec"].get("event_id") or "")
        for item in reader.feed(Document(value, Source("x", number), number, "line")):
            if isinstance(item, Turn) and event:
                label_of[item.turn_id or ""] = event
    often = Counter(label_of.values())
    label_of = {turn: event for turn, event in label_of.items() if often[event] < MOST_OF_AN_EVENT}
    found, seconds = await imported(path)
    return {**gathered(found["bench"], label_of), "import_s": round(seconds, 1)}


async def locomo(data: Path, scratch: Path) -> dict[str, Any]:
    """Each conversation in a space of its own; the figures are those of all pairs together."""
    every: list[tuple[str, int, str, str]] = []
    label_of: dict[str, str] = {}
    together: Counter[str] = Counter()
    for number, case in enumerate(json.loads(gzip.decompress((data / "locomo_a.json.gz").read_bytes()))):
        path = scratch / "one.json"
        path.write_text(json.dumps([case]))
        found, _ = await imported(path)
        atoms = [(f"{number}:{one[0]}", *one[1:]) for one in found["bench"]]
        # Conversations lie apart, so that no window holds two of them.
        every += [(one[0], one[1] + number * 10**16, f"{number}:{one[2]}", one[3]) for one in atoms]
        for name, said in case["conversation"].items():
            if isinstance(said, list):
                label_of |= {f"{number}:{turn['dia_id']}": f"{number}:{name}" for turn in said}
        together.update(_answering(number, case, atoms))
    return {
        **gathered(every, label_of),
        "pairs_that_answer_together": together["pairs"],
        "of_them_in_one_scenario": round(together["scenario"] / max(1, together["pairs"]), 3),
        "of_them_in_one_session": round(together["session"] / max(1, together["pairs"]), 3),
    }


def _answering(number: int, case: Any, atoms: Atoms) -> Counter[str]:
    scenarios: dict[str, set[str]] = defaultdict(set)
    for turn, _, scenario, _ in atoms:
        scenarios[turn].add(scenario)
    counted: Counter[str] = Counter()
    for question in case["qa"]:
        turns = sorted({f"{number}:{id}" for id in question.get("evidence", ())} & scenarios.keys())
        for one, other in itertools.combinations(turns, 2):
            counted["pairs"] += 1
            counted["scenario"] += bool(scenarios[one] & scenarios[other])
            counted["session"] += one.rsplit(":", 1)[0] == other.rsplit(":", 1)[0]
    return counted


def growth(sessions_a_project: int) -> dict[str, Any]:
    """Statements and milliseconds of each of 200 sessions, one a day; their means over every 25."""
    chance = random.Random(7)
    vocabulary = [f"w{n}x" for n in range(4_000)]
    weights = [1 / (n + 10) for n in range(len(vocabulary))]
    sim, milliseconds, statements = Sim(), list[float](), list[int]()
    counted: Counter[str] = Counter()
    for session in range(SESSIONS):
        project = f"p{session // sessions_a_project}"
        own = [f"{project}w{n}x" for n in range(40)]
        said = [[*chance.choices(vocabulary, weights, k=WORDS), *chance.choices(own, k=2)] for _ in range(FACTS)]
        sim.learn(
            *(
                Said(" ".join(words), session * DAY_S + fact * 60, f"s{session}", project)
                for fact, words in enumerate(said)
            )
        )
        counted.clear()
        sim.db.set_trace_callback(lambda _: counted.update(("statements",)))
        start = time.process_time()
        sim.arrange_all()
        milliseconds.append(1e3 * (time.process_time() - start))
        sim.db.set_trace_callback(None)
        statements.append(counted["statements"])
    (RESULTS / f"scenarios-{sessions_a_project}.svg").write_text(picture(milliseconds))
    means = {
        f"{at + 1}-{at + 25}": {
            "ms": round(sum(milliseconds[at : at + 25]) / 25, 1),
            "statements": round(sum(statements[at : at + 25]) / 25),
        }
        for at in range(0, SESSIONS, 25)
    }
    return {"sessions": SESSIONS, "facts_a_session": FACTS, "scenarios": len(sim.groups()), "by_sessions": means}


def picture(values: Sequence[float]) -> str:
    """A point a session: milliseconds of its decision and fold, over what there is already."""
    width, height, left, bottom = 640, 300, 50, 36
    most = max(values) * 1.1
    points = [
        (left + at / len(values) * (width - left - 20), height - bottom - value / most * (height - bottom - 24))
        for at, value in enumerate(values)
    ]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="#1f77b4"/>' for x, y in points)
    lines = "".join(
        f'<text x="6" y="{height - bottom - step / 4 * (height - bottom - 24) + 4:.0f}">{most * step / 4:.0f}</text>'
        for step in range(5)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="12" '
        f'font-family="sans-serif"><rect width="{width}" height="{height}" fill="white"/>'
        f'<text x="{left}" y="14">milliseconds to arrange a new session, by sessions there are already</text>'
        f'{lines}{dots}<text x="{left}" y="{height - 12}">0</text>'
        f'<text x="{width - 50}" y="{height - 12}">{len(values)}</text></svg>\n'
    )


async def main() -> None:
    os.environ["LAMINA_EMBEDDING_PROVIDER"] = "none"
    options = arguments(__doc__, sets=",".join(SETS), scratch="/tmp")
    kept = RESULTS / "scenarios.json"
    figures: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    figures = {
        name: figures[name] for name in ("locomo", "lifebench_en", "lifebench_zh", "growth") if name in figures
    }
    for name in options.sets.split(","):
        if name == "growth":
            figures[name] = {f"{most} sessions a project": growth(most) for most in (20, SESSIONS)}
        elif name == "locomo":
            figures[name] = await locomo(options.data, Path(options.scratch))
        else:
            figures[name] = await lifebench(options.data, name.removeprefix("lifebench_"))
    keep("scenarios", figures)


if __name__ == "__main__":
    asyncio.run(main())
