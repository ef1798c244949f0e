"""A cluster whose leader is cut off from the others by the network, while its own clients still reach it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.bus.nats import connect
from lamina.bus.stream import ensure_stream
from lamina.errors import Transient
from tests.support.cluster import CREDENTIALS, NODES, SUBJECT, Node, held, leader, publish, running

RUNS = max(1, int(os.environ.get("LAMINA_FAULTS", "10")) // 10)
PUBLISHED = 40


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[list[Node]]:
    """Three network namespaces on a bridge that leads nowhere else, and a node for each."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2, to make network namespaces")
    mark = f"{os.getpid() % 10_000:04d}"
    bridge, below = f"lmb{mark}", f"10.213.{random.randrange(1, 250)}"
    with contextlib.ExitStack() as stack:
        try:
            ip("link", "add", bridge, "type", "bridge")
            stack.callback(ip, "link", "del", bridge)
            ip("addr", "add", f"{below}.254/24", "dev", bridge)
            ip("link", "set", bridge, "up")
            for n in range(1, NODES + 1):
                space, outer, inner = f"lmn{mark}-{n}", f"lmo{mark}-{n}", f"lmi{mark}-{n}"
                ip("netns", "add", space)
                stack.callback(ip, "netns", "del", space)
                ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
                ip("link", "set", outer, "master", bridge, "up")
                ip("-n", space, "addr", "add", f"{below}.{n}/24", "dev", inner)
                ip("-n", space, "link", "set", inner, "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        addresses = [f"{below}.{n}" for n in range(1, NODES + 1)]
        yield [
            Node(
                tmp_path,
                f"n{n + 1}",
                address,
                (4222, 6222, 8222),
                [f'"nats://{other}:6222"' for other in addresses if other != address],
                ["ip", "netns", "exec", f"lmn{mark}-{n + 1}"],
            )
            for n, address in enumerate(addresses)
        ]


def cut(act: str, node: Node, nodes: list[Node]) -> None:
    """Let what `node` sends to the other nodes vanish (`add`), or not any more (`del`)."""
    for other in nodes:
        if other is not node:
            ip("-n", node.inside[-1], "route", act, "blackhole", f"{other.address}/32")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(RUNS))
async def test_a_leader_that_is_cut_off_accepts_nothing_and_the_others_go_on(seed: int, network: list[Node]) -> None:
    nodes = network
    async with running(nodes):
        bus = await connect([node.url for node in nodes], credentials=CREDENTIALS)
        await ensure_stream(bus, max_bytes=64 * 1024 * 1024, replicas=3, timeout_s=20)
        await publish(bus, 0, random.Random(seed).randint(1, PUBLISHED))
        await bus.close()
        lost = await leader(nodes)
        stale = await connect(lost.url, credentials=CREDENTIALS)
        others = await connect([node.url for node in nodes if node is not lost], credentials=CREDENTIALS)

        cut("add", lost, nodes)
        try:
            with pytest.raises(Transient):
                await stale.publish(SUBJECT, b"999", id="stale", timeout_s=2.0)
            await publish(others, 100, PUBLISHED)
        finally:
            cut("del", lost, nodes)
        for node in nodes:
            await node.ready()
        await publish(stale, 200, 1)

        accepted = [int(raw) for raw in await held(others) if raw != b"999"]
        assert accepted == sorted(set(accepted)), "once, and in the order of acceptance"
        assert set(range(100, 100 + PUBLISHED)) | {200} <= set(accepted)
        await stale.close()
        await others.close()
