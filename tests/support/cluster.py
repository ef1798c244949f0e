"""Three nats-servers on loopback, of the configuration that is shipped in infra/cluster."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lamina.bus.monitor import monitored
from lamina.bus.nats import Credentials, NatsBus
from lamina.bus.server import find_binary
from lamina.errors import Transient

CONFIG = Path(__file__).parents[2] / "infra" / "cluster" / "node.conf"
NODES = 3
READY_S = 30.0
SUBJECT = "lamina.ev.43.alice.turn-recorded"
CREDENTIALS = Credentials(user="lamina", password="only-for-tests")


class Node:
    """One server: started, killed, frozen, and started again in the same place. `inside` are words before its
    command, such as those that enter a network namespace."""

    def __init__(
        self, folder: Path, name: str, address: str, ports: tuple[int, int, int], routes: list[str], inside: list[str]
    ) -> None:
        client, route, monitor = ports
        self.name = name
        self.address = address
        self.inside = inside
        self.folder = folder / name
        self.folder.mkdir()
        self.url = f"nats://{address}:{client}"
        self.monitor_url = f"http://{address}:{monitor}"
        self._environ = {
            "LAMINA_NODE": name,
            "LAMINA_LISTEN": f"{address}:{client}",
            "LAMINA_CLUSTER_LISTEN": f"{address}:{route}",
            "LAMINA_ROUTES": f"[{', '.join(routes)}]",
            "LAMINA_MONITOR": f"{address}:{monitor}",
            "LAMINA_STORE": str(self.folder),
            "LAMINA_PASSWORD": CREDENTIALS.password,
        }
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self._child = subprocess.Popen(
                [*self.inside, str(find_binary()), "-c", str(CONFIG)],
                env=os.environ | self._environ,
                stdout=log,
                stderr=log,
            )

    def send(self, number: signal.Signals) -> None:
        assert self._child is not None
        self._child.send_signal(number)

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    async def ready(self) -> None:
        """Return once this server is in step with the cluster."""
        async with asyncio.timeout(READY_S):
            while True:
                try:
                    if (await monitored(self.monitor_url, "/healthz")).get("status") == "ok":
                        return
                except Transient:
                    pass
                await asyncio.sleep(0.05)


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[list[Node]]:
    """Three nodes that have found one another; all are ended after the block."""
    ports = free_ports(3 * NODES)
    nodes = [
        Node(folder, f"n{n + 1}", "127.0.0.1", (ports[n], ports[n + 3], ports[n + 6]), routes(ports, n), [])
        for n in range(NODES)
    ]
    async with running(nodes):
        yield nodes


def routes(ports: list[int], n: int) -> list[str]:
    return [f'"nats://127.0.0.1:{port}"' for port in ports[NODES : 2 * NODES] if port != ports[NODES + n]]


@asynccontextmanager
async def running(nodes: list[Node]) -> AsyncIterator[None]:
    """The nodes from the moment all are in step, until the block ends."""
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            await node.ready()
        yield
    finally:
        for node in nodes:
            node.kill()


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


async def leader(nodes: list[Node]) -> Node:
    """The node that leads the stream."""
    async with asyncio.timeout(20):
        while True:
            for node in nodes:
                try:
                    told = await monitored(node.monitor_url, "/jsz?streams=true")
                except Transient:
                    continue
                for account in told.get("account_details", ()):
                    for stream in account.get("stream_detail", ()):
                        name = stream.get("cluster", {}).get("leader")
                        if name:
                            return next(one for one in nodes if one.name == name)
            await asyncio.sleep(0.05)


async def publish(bus: NatsBus, first: int, count: int) -> None:
    """Each message until it is accepted, with an id of its own."""
    async with asyncio.timeout(60):
        for n in range(first, first + count):
            while True:
                try:
                    await bus.publish(SUBJECT, b"%d" % n, id=f"id-{n}", timeout_s=1.0)
                    break
                except Transient:
                    await asyncio.sleep(0.02)


async def held(bus: NatsBus) -> list[bytes]:
    """Every message of the log, by a reader that outlives the loss of servers."""
    found: list[bytes] = []
    reader = bus.read([SUBJECT], after=0, name="whole")
    async with asyncio.timeout(60):
        last = await bus.last(SUBJECT)
        assert last is not None
        seq = 0
        while seq < last.seq:
            try:
                for message in await reader.fetch(100, 1.0):
                    found.append(message.data)
                    seq = message.seq
            except Transient:
                continue
    await reader.close()
    return found
