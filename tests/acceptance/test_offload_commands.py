"""What offloading did, as the installed command line tells it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

from lamina.client import Memory
from lamina.home import Home
from tests.support.whole import daemon

LONG = "\n".join(f"line {n}: value_{n} = {n}" for n in range(400))


def conversation() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look at the files."}]
    for n in range(6):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "cat", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"{n}\n{LONG}"})
    return messages


async def lamina(home: Home, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "--space", "alice", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_ledger_and_cuts_are_shown_as_tables_and_as_json(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        fitted = await memory.context(conversation(), session="s1", window_tokens=20_000)
        await memory.settled()
        _, ledger, _ = await lamina(home, "show", "ledger", "--json")
        _, table, _ = await lamina(home, "show", "ledger")
        _, cuts, _ = await lamina(home, "show", "context", "--session", "s1", "--json")
        _, one, _ = await lamina(home, "show", "context", "--session", "s1", "--turn", "1")
        missing, _, why = await lamina(home, "show", "context", "--session", "s1", "--turn", "9")
        usage, _, needs = await lamina(home, "show", "context")

    assert fitted.cuts
    saved = json.loads(ledger)
    assert saved["result_tokens"] > saved["stub_tokens"] > 0
    assert "in all" in table
    assert [json.loads(line)["window_tokens"] for line in cuts.splitlines()] == [20_000]
    assert "c0" in one
    assert (missing, usage) == (1, 2)
    assert "has 1 cuts" in why
    assert "--session" in needs
