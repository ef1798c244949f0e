"""The replay verbs as a person types them, on a home whose daemon runs, in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import ANY

from lamina.client import Memory
from lamina.home import Home
from tests.support.whole import daemon, lines


async def lamina(home: Home, *arguments: str, code: int = 0) -> list[Any]:
    """The documents of `lamina ... --json`."""
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), *arguments, "--json"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    out, err = await process.communicate()
    assert process.returncode == code, err.decode()
    return [json.loads(line) for line in out.splitlines()]


async def test_rebuild_while_events_arrive_and_recalls_run(home: Home) -> None:
    """No recall fails, nothing is lost, and the position that recall stands on never goes back."""
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        for n in range(200):
            await memory.turn("user", f"turn {n} about tea", session="s1")
        await memory.settled(layers=["l0"])
        stop = asyncio.Event()
        seen: list[tuple[str, int]] = []
        said = 200

        async def arrive() -> None:
            nonlocal said
            while not stop.is_set():
                await memory.turn("user", f"turn {said} about tea", session="s1")
                said += 1
                await asyncio.sleep(0.005)

        async def ask() -> None:
            while not stop.is_set():
                hits = await memory.recall("tea", deadline_s=10, limit=3)
                seen.append((hits.status, hits.as_of_seq))

        async with asyncio.TaskGroup() as group:
            group.create_task(arrive())
            group.create_task(ask())
            done = await lamina(home, "replay", "rebuild")
            meanwhile = await lamina(home, "replay", "verify")
            stop.set()
        await memory.settled()
        found = await lamina(home, "replay", "verify")

    assert {one["service"] for one in done} >= {"journal", "offload", "vectors"}
    assert {status for status, _ in seen} == {"found"}
    assert len(seen) > 3
    assert [seq for _, seq in seen] == sorted(seq for _, seq in seen)
    assert meanwhile[0]["findings"] == found[0]["findings"] == []
    turns = [line for line in lines(home, "alice") if line["event"]["type"] == "turn.recorded"]
    assert len(turns) == said


async def test_a_rebuild_needs_no_model_and_no_network(home: Home, monkeypatch: Any) -> None:
    """The embedding source and the model are a closed port; a rebuild does not notice."""
    closed = "http://127.0.0.1:1/v1"
    home.config.write_text(
        f'[embedding]\nprovider = "endpoint"\nbase_url = "{closed}"\nmodel = "m"\n'
        f'[llm]\nbase_url = "{closed}"\nmodel = "m"\n',
        encoding="utf-8",
    )
    monkeypatch.delenv("LAMINA_EMBEDDING_PROVIDER")
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        for n in range(20):
            await memory.turn("user", f"turn {n} about tea", session="s1")
        await memory.settled(layers=["l0"])
        before = json.dumps(lines(home, "alice")[:20])
        shutil.rmtree(home.space("alice") / "views")
        done = await lamina(home, "replay", "rebuild", "journal", "vectors")
        hits = await memory.recall("tea", deadline_s=10)

    assert all(one["events"] >= 20 for one in done)
    assert hits.status == "found"
    assert json.dumps(lines(home, "alice")[:20]) == before


async def test_export_and_restore_of_a_running_home(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    other.prepare()
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.turn("user", "the orders live in PostgreSQL", session="s1")
        result = await memory.tool_result("shell", {"command": "ls"}, "x" * 300_000, session="s1")
        await memory.settled()
        await lamina(home, "export", str(tmp_path / "backup"), "--all")
    async with daemon(other):
        back = await lamina(other, "restore", str(tmp_path / "backup"))
        async with Memory.open(space="alice", home=other.path) as memory:
            await memory.settled()
            hits = await memory.recall("orders", deadline_s=10)
            part = await memory.read(result.node)
        assert await lamina(other, "dead", "list") == []
        assert (await lamina(other, "replay", "verify"))[0]["findings"] == []
        await lamina(other, "dead", "retry", code=1)
        await lamina(other, "dead", "drop", "nothing", "--reason", "x", code=1)

    assert back[0]["published"] >= 2
    assert "the orders live in PostgreSQL" in {item.text for item in hits.items}
    assert "xxxx" in part.text


async def test_verify_names_the_command_and_the_command_heals(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        for n in range(20):
            await memory.turn("user", f"turn {n}", session="s1")
        await memory.settled()
        ledger = sorted((home.space("alice") / "log").glob("*.jsonl"))[-1]
        raw = ledger.read_bytes().splitlines(keepends=True)
        ledger.write_bytes(b"".join(raw[:3] + raw[4:]))
        found = await lamina(home, "replay", "verify", code=1)
        for heal in {one["heal"] for one in found[0]["findings"]}:
            await lamina(home, *heal.split()[1:])
        healed = await lamina(home, "replay", "verify")
        await memory.turn("user", "and on", session="s1")
        await memory.settled()
        again = await lamina(home, "replay", "verify")

    assert {one["what"] for one in found[0]["findings"]} == {"ledger.missing"}
    assert healed[0]["findings"] == again[0]["findings"] == []
    assert ledger.read_bytes().splitlines(keepends=True)[: len(raw)] == raw


async def test_second_thoughts_from_the_command_line(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.turn("user", "I live in Lisbon.", session="s1")
        await memory.end_session("s1")
        await memory.settled(20)
        of = ("--space", "alice", "replay")

        (made,) = await lamina(home, *of, "rederive", "second")
        assert (made["atoms"], made["settings"]) == (1, {})
        (found,) = await lamina(home, *of, "diff", "second")
        assert [found[name] for name in ("same", "gained", "lost", "changed")] == [1, 0, 0, 0]
        (adopted,) = await lamina(home, *of, "adopt", "second")
        assert (adopted["atoms"], adopted["undone"]) == (1, 1)
        await lamina(home, *of, "drop", "second", code=1)
        await lamina(home, *of, "rederive", code=1)
        await lamina(home, *of, "rederive", "third", "--set", "llm.none=1", code=1)
        assert await lamina(home, *of, "verify") == [{**_none(), "events": ANY, "seconds": ANY}]


def _none() -> dict[str, Any]:
    return {"findings": [], "spaces": 1}
