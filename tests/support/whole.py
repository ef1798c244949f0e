"""The whole thing for tests: a daemon as a process of its own, and what stands on its disk."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from lamina import ids
from lamina.config import Config
from lamina.daemon import Daemon
from lamina.home import Home, Runtime

PATIENCE_S = 30.0


@asynccontextmanager
async def daemon(home: Home, config: Config | None = None, **more: Any) -> AsyncIterator[Daemon]:
    """A daemon in this process, from the moment clients can connect; stopped in the end."""
    one = Daemon(home, config or Config(), **more)
    ready = asyncio.Event()

    async with asyncio.TaskGroup() as group:
        run = group.create_task(one.run(lambda _: ready.set()))
        waiting = group.create_task(ready.wait())
        await asyncio.wait({run, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        try:
            if ready.is_set():
                yield one
        finally:
            one.stop("the test is over")


@contextmanager
def process(home: Home, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`lamina <arguments>` on a home, killed in the end if it still runs."""
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def end(home: Home) -> None:
    """End the daemon of a home, whoever started it, and wait until it is gone."""
    runtime = home.runtime()
    if runtime is not None:
        with suppress(ProcessLookupError):
            os.kill(runtime.pid, signal.SIGCONT)
            os.kill(runtime.pid, signal.SIGTERM)


async def gone(home: Home) -> None:
    """Return once no daemon runs on the home."""
    async with asyncio.timeout(PATIENCE_S):
        while home.runtime() is not None:  # noqa: ASYNC110 - another process, so nobody tells
            await asyncio.sleep(0.01)


async def up(home: Home) -> Runtime:
    """Return once a daemon runs on the home."""
    async with asyncio.timeout(PATIENCE_S):
        while (runtime := home.runtime()) is None:  # noqa: ASYNC110 - another process, so nobody tells
            await asyncio.sleep(0.01)
    return runtime


def lines(home: Home, space: str) -> list[dict[str, Any]]:
    """The ledger of a space, line for line; fails where one is not whole or not JSON."""
    found = []
    for path in sorted((home.spaces / ids.token(space) / "log").glob("*.jsonl")):
        raw = path.read_bytes()
        assert raw == b"" or raw.endswith(b"\n"), f"{path.name} ends in the middle of a line"
        found += [json.loads(line) for line in raw.splitlines()]
    return found


def sources(home: Home, space: str) -> list[dict[str, Any]]:
    """The ledger lines of source events: what services decided of them, and when, is left out."""
    return [line for line in lines(home, space) if "event" in line and "step" not in line["event"]["data"]]


def texts(home: Home, space: str) -> list[Any]:
    """What was said, in ledger order."""
    return [line["event"]["data"].get("text") for line in sources(home, space)]


def outbox_files(home: Home) -> list[str]:
    return sorted(path.name for path in home.outbox.iterdir())


def blob_path(home: Home, space: str, sha256: str) -> Path:
    return home.spaces / ids.token(space) / "blobs" / sha256
