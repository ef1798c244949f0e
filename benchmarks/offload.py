"""What does a stub save, and does it still show what the next steps quote?

usage: python -m benchmarks.offload [--data FOLDER] [--runs N] [--peers PYTHON] [--peer-runs N]

Real SWE-agent runs. The prompt of step t holds all earlier thoughts and actions, the newest `keep` results whole and
older ones as stubs; tokens are characters / 4. A need is an identifier, path or number in the action of step t that
stands in an older result and nowhere in what stays whole. Per `keep`:
- saving: prompt tokens of all steps, against none offloaded; of_dropping: the same as a share of what dropping saves
- visible: needs on a stub line that is a line of the result (or at least 40 characters or 60 % of one), or that
  carries the number of a line that holds the need; a list of bare words shows nothing
- reachable: needs that are visible, or that `read(query=need, max_tokens=400)` shows
- by_model of the run, and by_kind of the newest result that holds the need (saving there: of that kind's tokens)
Beside it: `masking` (a placeholder), `head_tail` (at the size that saves the same), and compressors from PyPI, each
called on a result as its documentation recommends, where the interpreter named by --peers has them.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common import arguments, keep, quantiles
from lamina.digest import read, stub
from lamina.digest.kinds import kind_of
from lamina.digest.kinds.plan import Content, call_of
from lamina.digest.stubs import SMALL
from lamina.digest.text import lines_of

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{4,}|\d{2,}")
NUMBER = re.compile(r"\d+")
PREFIX = re.compile(r"^\s*(?:[>*+-]\s*)?(?:L?\d+(?:-L?\d+)?\s*[:|│.)]\s*)?")
KEEPS = (1, 3, 10)
READ_TOKENS = 400
PEERS = ("contextgc", "contextpress", "claw-compactor", "headroom-ai")

Policy = Callable[[str, str, str], str]  # node, action, result -> what stands in its place


class Need(NamedTuple):
    """A word that step `step` needs from the results in `where` (indices, oldest first)."""

    step: int
    word: str
    where: list[int]


def tokens(text: str) -> int:
    return max(1, len(text) // 4) if text else 0


def load(data: Path, limit: int) -> list[dict[str, Any]]:
    files = sorted(data.glob("swe_trajectories_*.jsonl.gz"))
    if not files:
        raise SystemExit(f"no swe_trajectories_*.jsonl.gz in {data}: name the folder with --data")
    with gzip.open(files[0], "rt") as file:
        rows = [json.loads(line) for line in file]
    return rows[:: max(1, len(rows) // limit)][:limit] if limit else rows


def needs(steps: Sequence[dict[str, str]], kept: int) -> Iterator[Need]:
    """The needs of a run, in order."""
    said: set[str] = set()
    for t, step in enumerate(steps):
        older = max(0, t - kept)
        recent = " ".join(one["observation"] for one in steps[older:t])
        for word in sorted(set(WORD.findall(step["action"]))) if older else ():
            where = [i for i in range(older) if word in steps[i]["observation"]]
            if where and word not in said and word not in recent:
                yield Need(t, word, where)
        said.update(WORD.findall((step.get("thought") or "") + step["action"]))


def shows(word: str, shown: str, result: str) -> bool:
    """Whether the stub shows the word as a real line of the result, or beside the number of one."""
    if word not in shown or shown == result:
        return word in shown
    holding = [(i, line.strip()) for i, line in enumerate(result.split("\n"), 1) if word in line]
    for row in (row for row in shown.split("\n") if word in row):
        bare = PREFIX.sub("", row).strip().strip("…").strip()
        if any(
            (line and line in row) or (len(bare) >= min(40, 0.6 * len(line)) and bare in line) for _, line in holding
        ):
            return True
        numbers = {int(number) for number in NUMBER.findall(row) if len(number) < 8}
        if any(i in numbers for i, _ in holding):
            return True
    return False


def kind(step: dict[str, str]) -> str:
    """The kind the digest sees, for the table by kind."""
    result = step["observation"]
    if len(result) <= SMALL:
        return "small"
    return kind_of(Content(result, lines_of(result), call_of("shell", {"command": step["action"]}, False)))


class Tally:
    """Counts of one policy over some runs."""

    def __init__(self) -> None:
        self.full = self.sent = self.dropped = self.needs = self.visible = self.reachable = self.longer = 0

    def figures(self) -> dict[str, float]:
        saving, dropping = 1 - self.sent / max(1, self.full), 1 - self.dropped / max(1, self.full)
        return {
            "saving": round(100 * saving, 1),
            "of_dropping": round(saving / dropping, 3) if dropping else 0.0,
            "visible": round(100 * self.visible / max(1, self.needs), 1),
            "reachable": round(100 * self.reachable / max(1, self.needs), 1),
            "needs": self.needs,
            "longer_than_result": self.longer,
        }


def measure(
    runs: Sequence[dict[str, Any]], stubs: Sequence[Sequence[str]], kept: int, *, reading: bool
) -> dict[str, Any]:
    """The figures of one policy, whose stubs are given, as a whole, by model and by kind."""
    total = Tally()
    models: dict[str, Tally] = defaultdict(Tally)
    kinds: dict[str, Tally] = defaultdict(Tally)
    for run, shown in zip(runs, stubs, strict=True):
        steps = run["steps"]
        tallies = (total, models[run["run"].split("_", 1)[-1]])
        said = 0
        for t, step in enumerate(steps):
            later = len(steps) - 1 - t
            said += (tokens(step.get("thought") or "") + tokens(step["action"])) * later
            whole, short = tokens(step["observation"]), tokens(shown[t])
            as_stub = max(0, later - kept)
            for tally in (*tallies, kinds[kind(step)]):
                tally.full += whole * later
                tally.sent += whole * (later - as_stub) + short * as_stub
                tally.dropped += whole * (later - as_stub)
                tally.longer += short > whole
        for tally in tallies:
            tally.full, tally.sent, tally.dropped = tally.full + said, tally.sent + said, tally.dropped + said
        for need in needs(steps, kept):
            seen = any(shows(need.word, shown[i], steps[i]["observation"]) for i in need.where)
            newest = steps[need.where[-1]]
            found = seen or (
                reading and need.word in read(newest["observation"], query=need.word, max_tokens=READ_TOKENS).text
            )
            for tally in (*tallies, kinds[kind(newest)]):
                tally.needs += 1
                tally.visible += seen
                tally.reachable += found
    return {
        **total.figures(),
        "by_model": {name: tally.figures() for name, tally in sorted(models.items())},
        "by_kind": {name: tally.figures() for name, tally in sorted(kinds.items())},
    }


def apply(runs: Sequence[dict[str, Any]], policy: Policy, times: list[float] | None = None) -> list[list[str]]:
    """What the policy puts in the place of every result."""
    shown = []
    for r, run in enumerate(runs):
        row = []
        for t, step in enumerate(run["steps"]):
            started = time.perf_counter()
            row.append(policy(f"n{r:x}{t:03x}", step["action"], step["observation"]))
            if times is not None:
                times.append(time.perf_counter() - started)
        shown.append(row)
    return shown


def ours(node: str, action: str, result: str) -> str:
    return stub(node, (action.split() or ["shell"])[0], {"command": action}, result)


def head_tail(size: int) -> Policy:
    def policy(_node: str, _action: str, result: str) -> str:
        return result if len(result) <= size else f"{result[: size // 2]}\n…\n{result[-size // 2 :]}"

    return policy


def same_saving(runs: Sequence[dict[str, Any]], saving: float) -> tuple[int, list[list[str]]]:
    """The size at which head and tail save as much (keep 1), and what they show."""
    low, high = 40, 4000
    while high - low > 20:
        middle = (low + high) // 2
        saved = measure(runs, apply(runs, head_tail(middle)), 1, reading=False)["saving"]
        low, high = (middle, high) if saved > saving else (low, middle)
    return high, apply(runs, head_tail(high))


def peer(name: str, python: str, runs: Sequence[dict[str, Any]]) -> list[list[str]] | str:
    """What a compressor makes of every result, or why it was skipped."""
    worker = Path(__file__).with_name("offload_peers.py")
    rows = "".join(
        json.dumps({"action": step["action"], "result": step["observation"]}) + "\n"
        for run in runs
        for step in run["steps"]
    )
    try:
        done = subprocess.run(
            [python, str(worker), name], input=rows, capture_output=True, text=True, check=False, timeout=900
        )
    except (OSError, subprocess.TimeoutExpired) as cause:
        return f"skipped: {type(cause).__name__}"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return f"skipped: {last.split(':')[0]}"
    texts = iter([json.loads(line) for line in done.stdout.splitlines()])
    return [[next(texts) for _ in run["steps"]] for run in runs]


def installed(name: str, python: str) -> str:
    """The version of a package where `python` looks for it."""
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def brief(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures of a policy that has no way to read back."""
    return {name: figures[name] for name in ("saving", "of_dropping", "visible", "needs", "longer_than_result")}


def main() -> None:
    options = arguments(__doc__, runs=0, peers="", peer_runs=15)
    runs = load(options.data, options.runs)
    times: list[float] = []
    stubs = apply(runs, ours, times)
    figures: dict[str, Any] = {"runs": len(runs), "stub_time": quantiles(times)}
    figures["kinds"] = dict(Counter(kind(step) for run in runs for step in run["steps"]))
    for kept in KEEPS:
        figures[f"keep_{kept}"] = {"lamina": measure(runs, stubs, kept, reading=True)}
    size, cut = same_saving(runs, figures["keep_1"]["lamina"]["saving"])
    masked = apply(runs, lambda node, _action, result: result if len(result) < 60 else f"[result {node} removed]")
    for kept in KEEPS:
        for name, shown in ((f"head_tail_{size}", cut), ("masking", masked)):
            figures[f"keep_{kept}"][name] = brief(measure(runs, shown, kept, reading=False))
    some = load(options.data, options.peer_runs)
    figures["peers"] = {"runs": len(some), "lamina": brief(measure(some, apply(some, ours), 1, reading=False))}
    for name in PEERS:
        made = peer(name, options.peers, some) if options.peers else "skipped: no --peers interpreter"
        figures["peers"][name] = (
            made
            if isinstance(made, str)
            else {"version": installed(name, options.peers), **brief(measure(some, made, 1, reading=False))}
        )
    keep("offload", figures)


if __name__ == "__main__":
    main()
