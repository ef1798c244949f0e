"""Does `fit` keep whole agent runs inside a window, valid, cheaper, and with a prefix a provider can cache?

usage: python -m benchmarks.context [--data FOLDER] [--runs N] [--windows 16000 32000]

Every SWE-agent run is replayed as an agent would live it: before each step the host asks for a list that fits, then
appends the step. Both providers' shapes, the host's own full list each time. Per window and provider:
- above: prompts above the window (must be 0), and those that would be without fitting
- invalid: prompts the provider would refuse (must be 0)
- saving: prompt tokens of all steps, fitted against whole
- same_prefix: share of a step's prompt tokens that begin the prompt exactly as the step before sent it, fitted and
  whole; fresh: prompt tokens beyond that prefix, fitted against whole (what a prefix cache leaves to pay in full)
- cost_saving: the same where a cached token costs a tenth, as both providers bill it
- whole_newest: share of the ten newest results that stand whole

Stubs are lamina.digest's, the canvas is the offload service's, tokens are lamina.tokens'.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from lamina import digest
from lamina.context import Known, Observation, State, fit, validate
from lamina.offload.canvas import TERMS_OF_A_RESULT, CallSeen, Canvas, TurnSeen, fold, render, terms
from lamina.tokens import count_message
from lamina.tokens.counting import exact

KEEP = 10
CACHED = 10  # a cached token costs one in so many
SYSTEM = "You are an engineer who fixes issues in a repository with the tools you are given, one command at a time."
Message = dict[str, Any]


class Run:
    """One run as messages of a provider, with the records a client would keep of its results."""

    def __init__(self, run: dict[str, Any], provider: str) -> None:
        self.provider = provider
        self.steps = run["steps"]
        self.name = f"{run['run']}/{run['instance']}"
        goal = f"Fix the issue {run['instance']}."
        self.head: list[Message] = [{"role": "user", "content": goal}]
        if provider == "openai":
            self.head.insert(0, {"role": "system", "content": SYSTEM})
        self.canvas = fold(Canvas(), TurnSeen("user", goal))
        self.known: dict[str, Known] = {}

    def step(self, number: int) -> list[Message]:
        """The messages of a step; its call is drawn on the canvas."""
        step = self.steps[number]
        tool, arguments = (step["action"].split() or ["shell"])[0], {"command": step["action"]}
        call_id, result, thought = f"call_{number}", step["observation"], step["thought"]
        status = "error" in result[:200].lower()
        found = terms(result, TERMS_OF_A_RESULT)
        self.canvas = fold(self.canvas, CallSeen(self.node(call_id), tool, json.dumps(arguments), status, found))
        if self.provider == "openai":
            function = {"name": tool, "arguments": json.dumps(arguments)}
            call = {"id": call_id, "type": "function", "function": function}
            return [
                {"role": "assistant", "content": thought, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call_id, "content": result},
            ]
        said = [{"type": "text", "text": thought}] if thought.strip() else []
        used = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
        return [{"role": "assistant", "content": [*said, used]}, {"role": "user", "content": [answer]}]

    def node(self, call_id: str) -> str:
        return "n" + hashlib.sha256(f"{self.name}/{call_id}".encode()).hexdigest()[:11]

    def stub(self, seen: Observation) -> Known:
        if seen.key not in self.known:
            node = self.node(seen.key)
            self.known[seen.key] = Known(node, digest.stub(node, seen.tool, json.loads(seen.arguments), seen.text))
        return self.known[seen.key]


def same_prefix(before: list[Message], now: list[Message]) -> int:
    """Tokens of the messages that begin both lists."""
    total = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        total += count_message(new)
    return total


def replay(run: Run, window: int, tally: Counter[str], times: list[float]) -> None:
    """Live through one run and add what was seen to the tally."""
    host = list(run.head)
    state = State()
    sent: list[Message] = []
    whole_before = 0
    for number in range(len(run.steps)):
        start = time.perf_counter()
        fitted = fit(host, window, stubs=run.stub, state=state, canvas=render(run.canvas), keep=KEEP)
        times.append(time.perf_counter() - start)
        again = fit(fitted.messages, window, stubs=run.stub, state=fitted.state, canvas=render(run.canvas), keep=KEEP)
        newest = [message for message in host if message["role"] == "tool" or _results(message)][-KEEP:]
        tally.update(
            prompts=1,
            above=fitted.tokens > window,
            above_without=fitted.before > window,
            invalid=bool(validate(fitted.messages, run.provider)),
            longer=fitted.tokens > fitted.before,
            unstable=again.messages != fitted.messages,
            cutting=bool(fitted.cuts),
            tokens=fitted.tokens,
            tokens_whole=fitted.before,
            prefix=same_prefix(sent, fitted.messages),
            prefix_whole=whole_before,
            newest=len(newest),
            newest_whole=sum(message in fitted.messages for message in newest),
        )
        tally.update(f"level_{cut.level}" for cut in fitted.cuts)
        state, sent, whole_before = fitted.state, fitted.messages, fitted.before
        host += run.step(number)


def _results(message: Message) -> bool:
    return isinstance(message["content"], list) and any(part["type"] == "tool_result" for part in message["content"])


def report(provider: str, window: int, tally: Counter[str], times: list[float]) -> dict[str, Any]:
    """The figures of one window and provider."""
    fresh, fresh_whole = tally["tokens"] - tally["prefix"], tally["tokens_whole"] - tally["prefix_whole"]
    cost, cost_whole = fresh + tally["prefix"] / CACHED, fresh_whole + tally["prefix_whole"] / CACHED
    times.sort()
    return {
        "provider": provider,
        "window": window,
        "prompts": tally["prompts"],
        "above": tally["above"],
        "above_without": tally["above_without"],
        "invalid": tally["invalid"],
        "longer": tally["longer"],
        "not_idempotent": tally["unstable"],
        "saving_percent": round(100 * (1 - tally["tokens"] / tally["tokens_whole"]), 1),
        "same_prefix_percent": round(100 * tally["prefix"] / tally["tokens"], 1),
        "same_prefix_whole_percent": round(100 * tally["prefix_whole"] / tally["tokens_whole"], 1),
        "cost_saving_percent": round(100 * (1 - cost / cost_whole), 1),
        "fresh_tokens": fresh,
        "fresh_tokens_whole": fresh_whole,
        "prompts_with_new_cuts_percent": round(100 * tally["cutting"] / tally["prompts"], 1),
        "whole_newest_percent": round(100 * tally["newest_whole"] / tally["newest"], 1),
        "cuts": {name.removeprefix("level_"): n for name, n in sorted(tally.items()) if name.startswith("level_")},
        "fit_ms_p50": round(1e3 * times[len(times) // 2], 1),
        "fit_ms_p99": round(1e3 * times[int(len(times) * 0.99)], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--runs", type=int, default=0, help="of all runs, this many evenly spread (0: all)")
    parser.add_argument("--windows", type=int, nargs="+", default=[16_000, 32_000])
    options = parser.parse_args()
    files = sorted(options.data.glob("swe_trajectories_*.jsonl.gz"))
    if not files:
        sys.exit(f"no swe_trajectories_*.jsonl.gz in {options.data}: give the folder with --data")
    with gzip.open(files[0], "rt", encoding="utf-8") as lines:
        runs = [json.loads(line) for line in lines]
    if options.runs:
        runs = runs[:: max(1, len(runs) // options.runs)][: options.runs]
    figures = []
    for window in options.windows:
        for provider in ("openai", "anthropic"):
            tally: Counter[str] = Counter()
            times: list[float] = []
            for run in runs:
                replay(Run(run, provider), window, tally, times)
            figures.append(report(provider, window, tally, times))
            print(json.dumps(figures[-1]), flush=True)
    answer = {
        "question": "whole agent runs in a window: inside, valid, cheaper, cacheable?",
        "data": f"{files[0].name}, {len(runs)} runs",
        "tokens": "bpe-openai" if exact() else "estimate",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "figures": figures,
    }
    print(answer["machine"], answer["python"], answer["tokens"])
    if not options.runs:
        results = Path(__file__).parent / "results"
        results.mkdir(exist_ok=True)
        (results / "context.json").write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
