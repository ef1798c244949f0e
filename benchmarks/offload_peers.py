"""Worker of `offload.py`: what a compressor from PyPI makes of tool results, each in the way its documentation shows.

usage: PYTHON benchmarks/offload_peers.py NAME < results.jsonl; one JSON string per line on stdout. PYTHON is an
interpreter that has the package; this file needs nothing of Lamina.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def conversation(action: str, result: str) -> list[dict[str, Any]]:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "shell", "arguments": json.dumps({"command": action})},
    }
    return [
        {"role": "user", "content": "Fix the issue."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]


def content(messages: list[dict[str, Any]]) -> str:
    return "\n".join(str(message["content"]) for message in messages if message["role"] in ("tool", "system"))


def contextgc() -> Callable[[str, str], str]:
    from contextgc import compile_messages, load_schema

    schema = load_schema("coding")
    return lambda action, result: content(compile_messages(conversation(action, result), schema=schema)[0])


def contextpress() -> Callable[[str, str], str]:
    from contextpress import ContextManager

    manager = ContextManager(type="agent")
    return lambda action, result: content(manager.compress(conversation(action, result), return_stats=True).messages)


def claw_compactor() -> Callable[[str, str], str]:
    from claw_compactor.fusion.engine import FusionEngine

    engine = FusionEngine()
    return lambda _action, result: str(engine.compress(text=result)["compressed"])


def headroom_ai() -> Callable[[str, str], str]:
    from headroom import compress

    return lambda action, result: content(compress(conversation(action, result), model="gpt-4o").messages)


MAKERS = {
    "contextgc": contextgc,
    "contextpress": contextpress,
    "claw-compactor": claw_compactor,
    "headroom-ai": headroom_ai,
}

if __name__ == "__main__":
    compressed = MAKERS[sys.argv[1]]()
    answers = []
    for line in sys.stdin:
        row = json.loads(line)
        answers.append(json.dumps(compressed(row["action"], row["result"]) if row["result"] else ""))
    sys.stdout.write("\n".join(answers))
