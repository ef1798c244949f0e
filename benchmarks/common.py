"""What every benchmark prints and keeps: the machine, the versions, the raw figures."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from lamina.bus.nats import NatsBus, connect
from lamina.bus.server import read_credentials
from lamina.home import Home
from lamina.store import SQLITE_VERSION

RESULTS = Path(__file__).parent / "results"
IDLE_S = 0.03
"""Processor seconds of an idle daemon in half a second, at most: it beats, and looks around."""
DATA = Path(__file__).parent.parent.parent / "shared" / "data"


def machine() -> dict[str, Any]:
    """The machine and the versions, as far as they bear on the figures."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    server = shutil.which("nats-server", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "nats-server"
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": ".".join(map(str, SQLITE_VERSION)),
        "nats_server": subprocess.run(
            [server, "--version"], capture_output=True, text=True, check=False
        ).stdout.strip(),
        **{name: version(name) for name in ("lamina", "nats-py", "msgspec", "aiosqlite")},
        "load": [round(one, 2) for one in os.getloadavg()],
    }


def _lines(path: str) -> Iterable[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return ()


def arguments(doc: str | None, **extra: Any) -> argparse.Namespace:
    """Options that benchmarks share, and each one's own (name=default)."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the real logs")
    for name, default in extra.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    return parser.parse_args()


def keep(name: str, figures: dict[str, Any], *, done: bool = True) -> None:
    """Write the figures with the machine to `results/<name>.json`, and print them once all are there.

    A long run keeps what it has after each step (`done=False`): whatever interrupts it, that is not lost.
    """
    RESULTS.mkdir(exist_ok=True)
    document = {"benchmark": name, "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "machine": machine(), **figures}
    text = json.dumps(document if done else {**document, "interrupted": True}, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    if done:
        print(text)
    else:
        print(f"{name}: kept {', '.join(figures)}", file=sys.stderr)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """p50 and p99 of seconds, in milliseconds."""
    ordered = sorted(values)
    return {
        "p50_ms": round(1e3 * ordered[len(ordered) // 2], 3),
        "p99_ms": round(1e3 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 3),
        "n": len(ordered),
    }


def compiled() -> dict[str, str]:
    """The environment of a program that keeps its bytecode, as an installed one does, wherever this runs."""
    return os.environ | {
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "lamina-bench-bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }


@contextlib.asynccontextmanager
async def daemon(services: str = "") -> AsyncIterator[tuple[Home, int]]:
    """A daemon on a temporary home: the home and the process. `services` limits what it runs."""
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
        home = Home(folder)
        environment = compiled() | ({"LAMINA_DAEMON_SERVICES": services} if services else {})
        command = [sys.executable, "-m", "lamina.cli", "--home", folder, "up"]
        process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=subprocess.DEVNULL)
        try:
            while home.runtime() is None:
                if process.returncode is not None:
                    raise SystemExit(f"the daemon ended with code {process.returncode}")
                await asyncio.sleep(0.005)
            yield home, process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.wait()


async def bus(home: Home) -> NatsBus:
    """A connection of our own to the daemon's server."""
    runtime = home.runtime()
    assert runtime is not None
    return await connect(runtime.url, credentials=read_credentials(Path(runtime.credentials)), name="benchmark")


def rss_mb(pid: int) -> float:
    """Resident memory of a process, in MB."""
    fields = dict(line.split(":", 1) for line in _lines(f"/proc/{pid}/status") if ":" in line)
    return round(int(fields["VmRSS"].split()[0]) / 1024, 1)


def process_cpu_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def until_idle(pid: int) -> float:
    """Wait until a process does next to nothing for half a second; the processor seconds it had used by then."""
    before = -1.0
    while (now := process_cpu_s(pid)) - before > IDLE_S:
        before = now
        await asyncio.sleep(0.5)
    return now


def tree_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def real_turns(data: Path) -> list[tuple[str, str, str]]:
    """(session, role, text) of real chats: LongMemEval's haystacks, in order, most of them long."""
    turns: list[tuple[str, str, str]] = []
    for path in sorted(data.glob("longmemeval_s_*.jsonl.gz")):
        with gzip.open(path, "rb") as file:
            for line in file:
                row = msgspec.json.decode(line)
                for session, said in zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True):
                    turns.extend((session, turn["role"], turn["content"]) for turn in said)
    if not turns:
        raise SystemExit(f"no longmemeval_s_*.jsonl.gz in {data}: name the folder with --data")
    return turns
