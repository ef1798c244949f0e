"""How many turns a second does `lamina import` take, until they are searchable, and is what it acknowledged on disk?

Real chat turns (LoCoMo and MemDaily) and long ones (LongMemEval), next to the two limits of the same machine in the
same run: the same bytes in raw atomic batches, and the same texts inserted into a plain FTS5 table. With strace
(a run of its own) the fsyncs of the server and of the daemon are counted beside the batches they stand for.

usage: python -m benchmarks.bulk_import
"""

from __future__ import annotations

import asyncio
import gzip
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.common import arguments, bus, compiled, daemon, keep, process_cpu_s, real_turns
from benchmarks.start_and_size import server_pid
from lamina import events, ids, times
from lamina.bus import Outgoing
from lamina.client import Memory
from lamina.home import Home
from lamina.store.driver import driver

SPACE = "bench"
BATCH = 500
LONG = 6_000
Turn = tuple[str, str, str]


def chat_turns(data: Path) -> list[Turn]:
    """(session, role, text) of LoCoMo's chats and MemDaily's diaries."""
    turns: list[Turn] = []
    for path in sorted(data.glob("locomo_*.json.gz")):
        for row in msgspec.json.decode(gzip.decompress(path.read_bytes())):
            for session, said in row["conversation"].items():
                if isinstance(said, list):
                    turns += [(f"{row['sample_id']}-{session}", "user", one["text"]) for one in said]
    for path in sorted(data.glob("memdaily_*.jsonl.gz")):
        with gzip.open(path, "rb") as file:
            for line in file:
                row = msgspec.json.decode(line)
                turns += [(f"{row['kind']}-{row['tid']}", "user", one["message"]) for one in row["messages"]]
    return [turn for turn in turns if turn[2].strip()]


def log_of(turns: list[Turn], folder: Path, name: str) -> Path:
    path = folder / f"{name}.jsonl"
    rows = ({"role": role, "text": text, "session": session} for session, role, text in turns)
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return path


async def imported(turns: list[Turn]) -> dict[str, Any]:
    """The verb, from its start until keywords find the last turn, with every service running; those that stood back
    for the journal go on after it, and are waited for last. Beside it, how long the verb takes with one turn."""
    with tempfile.TemporaryDirectory() as folder:
        path, one = (
            log_of(turns, Path(folder), "turns"),
            log_of([("first", "user", "One turn.")], Path(folder), "one"),
        )
        async with daemon() as (home, pid):
            await imports(one, home)  # compiles what was not compiled yet, as installing does
            start = time.perf_counter()
            await imports(one, home)
            begun = time.perf_counter() - start
            before = cpu_s(pid)
            start = time.perf_counter()
            await imports(path, home)
            took = time.perf_counter() - start
            spent = {name: round(1e3 * (now - before[name]) / len(turns), 3) for name, now in cpu_s(pid).items()}
            async with Memory.open(space=SPACE, home=home.path) as memory:
                hits = await memory.recall(turns[-1][2][:200], deadline_s=10)
                assert hits.status == "found", hits
                await memory.settled(600)
                settled = time.perf_counter() - start
    return {
        "turns": len(turns),
        "seconds": round(took, 2),
        "turns_per_s": round(len(turns) / took),
        "seconds_with_one_turn": round(begun, 2),
        "turns_per_s_beyond_them": round(len(turns) / (took - begun)),
        "cpu_s_per_1000_turns": spent,
        "all_services_settled_seconds": round(settled, 2),
    }


def cpu_s(pid: int) -> dict[str, float]:
    """Processor seconds used so far, by process; those of the importer once it has ended."""
    used = {name: process_cpu_s(number) for name, number in processes(pid).items()}
    return {**used, "importer": sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])}


async def imports(path: Path, home: Home) -> None:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "--space", SPACE]
    command += ["import", str(path), "--wait", "l0", "--json"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=compiled()
    )
    _, errors = await process.communicate()
    if process.returncode:
        raise SystemExit(errors.decode())


async def raw_batches(turns: list[Turn]) -> float:
    """Turns a second of the same events in atomic batches, nobody reading."""
    prepared = []
    for session, role, text in turns:
        data = events.TurnRecorded(role=role, text=text)
        event = events.make(data, id=ids.uuid7(), space=SPACE, time=times.aware(None), session=session)
        prepared.append(Outgoing(ids.event_subject(SPACE, event.type), events.encode(event), event.id))
    async with daemon("query") as (home, _):
        link = await bus(home)
        start = time.perf_counter()
        for at in range(0, len(prepared), BATCH):
            await link.publish_batch(prepared[at : at + BATCH])
        took = time.perf_counter() - start
        await link.close()
    return round(len(turns) / took)


def raw_fts(turns: list[Turn]) -> float:
    """Turns a second into a plain FTS5 table, porter unicode61, a commit every 500, synchronous NORMAL."""
    with tempfile.TemporaryDirectory() as folder:
        db = driver.connect(f"{folder}/fts.db", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("CREATE VIRTUAL TABLE fts USING fts5(text, tokenize='porter unicode61')")
        start = time.perf_counter()
        for at in range(0, len(turns), BATCH):
            db.execute("BEGIN")
            db.executemany("INSERT INTO fts VALUES(?)", [(text,) for _, _, text in turns[at : at + BATCH]])
            db.execute("COMMIT")
        took = time.perf_counter() - start
        db.close()
    return round(len(turns) / took)


async def fsyncs(turns: list[Turn]) -> dict[str, Any]:
    """fsync and fdatasync calls of the server and of the daemon while the turns are imported."""
    if shutil.which("strace") is None:
        return {"skipped": "no strace here"}
    with tempfile.TemporaryDirectory() as folder:
        path = log_of(turns, Path(folder), "turns")
        async with daemon() as (home, pid):
            traces = [await traced(number, Path(folder) / name) for name, number in processes(pid).items()]
            await imports(path, home)
            for trace in traces:
                trace.terminate()
                await trace.wait()
        counts = {name: syncs(Path(folder) / name) for name in ("nats_server", "daemon")}
    return {"turns": len(turns), "batches": -(-len(turns) // BATCH), **counts}


def processes(pid: int) -> dict[str, int]:
    return {"nats_server": server_pid(pid), "daemon": pid}


async def traced(pid: int, path: Path) -> asyncio.subprocess.Process:
    command = ["strace", "-f", "-q", "-e", "trace=fsync,fdatasync", "-o", str(path), "-p", str(pid)]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
    await asyncio.to_thread(until_traced, pid, process.pid)
    return process


def until_traced(pid: int, tracer: int) -> None:
    while f"TracerPid:\t{tracer}\n" not in Path(f"/proc/{pid}/status").read_text():
        time.sleep(0.01)


def syncs(path: Path) -> int:
    return sum(1 for line in path.read_text().splitlines() if "sync(" in line)


async def main() -> None:
    options = arguments(__doc__)
    chat = chat_turns(options.data)
    long = list(islice(((s, r, t) for s, r, t in real_turns(options.data) if t.strip()), LONG))
    figures: dict[str, Any] = {}
    for name, turns in (("chat", chat), ("long", long)):
        characters = sum(len(text) for _, _, text in turns) / len(turns)
        figures[name] = {
            "characters_per_turn": round(characters),
            "import": await imported(turns),
            "raw_atomic_batches_per_s": await raw_batches(turns),
            "raw_fts5_per_s": raw_fts(turns),
        }
        keep("bulk_import", figures, done=False)
    keep("bulk_import", {**figures, "fsyncs": await fsyncs(chat[:5_000])})


if __name__ == "__main__":
    os.environ.pop("LAMINA_HOME", None)
    asyncio.run(main())
