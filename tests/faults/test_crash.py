"""Random kills and freezes of client, server, daemon and journal worker while clients publish.

Whatever happens: every accepted event is in the ledger exactly once and in the order of its session, none that
raised is half there, and recall finds it. One system lives through all runs; each run is one fault, drawn by its
seed, and is checked before the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from lamina.bus.nats import NatsBus
from lamina.client import Memory
from lamina.errors import Timeout, Transient
from lamina.home import Home
from tests.support.whole import PATIENCE_S, blob_path, end, gone, sources, up

RUNS = int(os.environ.get("LAMINA_FAULTS", "10"))
PUBLISHER = Path(__file__).parent.parent / "support" / "publisher.py"
SPACE = "Alice and 민수"
TURNS = 12
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]


class System:
    """A home with a daemon, one more journal worker, and two clients of this process."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.clients: list[Memory] = []
        self.worker: asyncio.subprocess.Process | None = None
        self.progress = asyncio.Event()

    async def start(self) -> None:
        for _ in range(2):
            self.clients.append(await Memory.open(space=SPACE, home=self.home.path))
        await self.start_worker()

    async def start_worker(self) -> None:
        await up(self.home)
        self.worker = await self.spawn("-m", "lamina.cli", "--home", str(self.home.path), "worker", "journal")

    async def spawn(self, *arguments: str, stderr: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
        )

    async def stop(self) -> None:
        for client in self.clients:
            await client.close()
        if self.worker is not None:
            await ended(self.worker)
        end(self.home)
        await gone(self.home)

    # -- what may go wrong

    def server_pid(self) -> int:
        return int(json.loads((self.home.bus / "server.json").read_bytes())["pid"])

    async def daemon_pid(self) -> int:
        return (await up(self.home)).pid

    async def kill_server(self, _: random.Random) -> None:
        send(self.server_pid(), signal.SIGKILL)

    async def freeze_server(self, rng: random.Random) -> None:
        await frozen(self.server_pid(), rng.choice([0.05, 1.0]))

    async def kill_daemon(self, _: random.Random) -> None:
        send(await self.daemon_pid(), signal.SIGKILL)

    async def stop_daemon(self, _: random.Random) -> None:
        send(await self.daemon_pid(), signal.SIGTERM)

    async def freeze_daemon(self, rng: random.Random) -> None:
        await frozen(await self.daemon_pid(), rng.choice([0.05, 1.0]))

    async def kill_worker(self, _: random.Random) -> None:
        if self.worker is not None:
            await ended(self.worker)
        await self.start_worker()

    async def freeze_worker(self, rng: random.Random) -> None:
        if self.worker is not None and self.worker.returncode is None:
            await frozen(self.worker.pid, rng.choice([0.05, 3.0]))

    @property
    def faults(self) -> dict[str, Callable[[random.Random], Awaitable[None]]]:
        return {
            "kill server": self.kill_server,
            "freeze server": self.freeze_server,
            "kill daemon": self.kill_daemon,
            "stop daemon": self.stop_daemon,
            "freeze daemon": self.freeze_daemon,
            "kill worker": self.kill_worker,
            "freeze worker": self.freeze_worker,
        }

    # -- clients at work

    async def publish(self, memory: Memory, session: str, rng: random.Random) -> list[str]:
        """Publish turns one after another, some large, some with an id and twice; the ids that were accepted."""
        accepted: list[str] = []
        for n in range(TURNS):
            text = f"{session} {n}" + (" large" * 60_000 if rng.random() < 0.1 else "")
            turn_id = f"t{n}" if rng.random() < 0.3 else None
            for _ in range(2 if turn_id else 1):
                one = await memory.turn("user", text, session=session, turn_id=turn_id)
                if not accepted or accepted[-1] != one.id:
                    accepted.append(one.id)
            self.progress.set()
        return accepted

    async def trouble(self, name: str, rng: random.Random) -> None:
        """The fault, after a random number of turns."""
        for _ in range(rng.randint(1, TURNS)):
            self.progress.clear()
            await self.progress.wait()
        await self.faults[name](rng)

    async def killed_client(self, session: str, rng: random.Random) -> int:
        """A client in a process of its own that is killed in the middle; how many turns it was told are safe."""
        child = await self.spawn(str(PUBLISHER), str(self.home.path), SPACE, session, stderr=asyncio.subprocess.PIPE)
        assert child.stdout is not None
        said = 0
        for _ in range(rng.randint(1, 20)):
            if not await child.stdout.readline():
                assert child.stderr is not None
                pytest.fail(f"the client ended by itself: {(await child.stderr.read()).decode()}")
            said += 1
            self.progress.set()
        child.kill()
        said += (await child.stdout.read()).count(b"\n")
        await ended(child)
        return said

    def waiting(self) -> list[str]:
        """The outboxes that hold something; those of living clients stay, empty."""
        return [path.name for path in self.home.outbox.glob("*.jsonl") if path.stat().st_size]

    async def settled(self) -> None:
        """All outboxes are empty, also those of the dead, and the journal is at the end of the log."""
        async with asyncio.timeout(PATIENCE_S), Memory.open(space=SPACE, home=self.home.path) as memory:
            for client in [*self.clients, memory]:
                await client._link.emptied()
            while self.waiting():  # noqa: ASYNC110 - other processes, so nobody tells
                await asyncio.sleep(0.02)
            while True:
                with contextlib.suppress(Transient, Timeout):
                    return await memory.settled(10)
                await asyncio.sleep(0.05)


async def nobody() -> int:
    return 0


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


async def frozen(pid: int, seconds: float) -> None:
    """Longer than the clients' patience, or not; the freeze is the fault itself."""
    send(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        send(pid, signal.SIGCONT)


async def ended(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    if child.stdin is not None:
        child.stdin.close()
    await child.communicate()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(NatsBus.publish.__kwdefaults__ or {}, "timeout_s", 0.4)
        patch.setattr("lamina.client.link.LOOK_S", 0.05)
        patch.setattr("lamina.client.link.RESPAWN_S", 0.2)
        home = Home(tmp_path_factory.mktemp("crash") / "home")
        home.prepare()
        one = System(home)
        try:
            await one.start()
            yield one
        finally:
            await one.stop()


@pytest.mark.parametrize("seed", range(RUNS))
async def test_accepted_is_in_the_ledger_once_and_in_order(system: System, seed: int) -> None:
    rng = random.Random(seed)
    name = list(system.faults)[seed % len(system.faults)]
    sessions = [f"run{seed}-client{n}" for n in range(2)]
    killed = f"run{seed}-killed" if rng.random() < 0.4 else ""
    async with asyncio.timeout(PATIENCE_S * 3):
        trouble = asyncio.create_task(system.trouble(name, random.Random(seed)))
        work = [
            system.publish(client, session, random.Random(f"{seed}{session}"))
            for client, session in zip(system.clients, sessions, strict=True)
        ]
        last: Awaitable[int] = system.killed_client(killed, rng) if killed else nobody()
        accepted, said = await asyncio.gather(asyncio.gather(*work), last)
        system.progress.set()
        while not trouble.done():
            system.progress.set()
            await asyncio.sleep(0.01)
        await trouble
        await system.settled()

    ledger = sources(system.home, SPACE)
    ids = [line["event"]["id"] for line in ledger]
    seqs = [line["seq"] for line in ledger]
    assert len(ids) == len(set(ids)), f"{name}: twice"
    assert seqs == sorted(set(seqs))
    for session, wanted in zip(sessions, accepted, strict=True):
        mine = [line["event"] for line in ledger if line["event"]["session"] == session]
        assert [event["id"] for event in mine] == wanted, f"{name}, {session}"
        for event in mine:
            text = event["data"]["text"]
            if isinstance(text, dict):
                assert blob_path(system.home, SPACE, text["sha256"]).stat().st_size == text["size_bytes"]
    if killed:
        texts = [line["event"]["data"]["text"] for line in ledger if line["event"]["session"] == killed]
        assert texts == [f"{killed} {n}" for n in range(len(texts))], name
        assert said <= len(texts) <= said + 1, name
    hits = await system.clients[0].recall(f"run{seed}", deadline_s=5.0, limit=3)
    assert hits.status == "found", hits.degraded
