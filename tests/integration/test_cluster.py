"""The log on three servers: what was accepted stays, whichever of them is lost."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from lamina.bus import Outgoing, blobs
from lamina.bus.nats import NatsBus, connect
from lamina.bus.stream import ensure_stream
from lamina.client import Memory
from lamina.config import BusConfig, Config, load
from lamina.errors import Invalid, Transient
from lamina.home import Home
from tests.support import whole
from tests.support.cluster import CREDENTIALS, SUBJECT, Node, cluster, held, leader, publish

PUBLISHED = 60


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[list[Node]]:
    async with cluster(tmp_path) as nodes:
        yield nodes


@pytest.fixture
async def bus(nodes: list[Node]) -> AsyncIterator[NatsBus]:
    bus = await connect([node.url for node in nodes], credentials=CREDENTIALS)
    await ensure_stream(bus, max_bytes=64 * 1024 * 1024, replicas=3, timeout_s=20)
    yield bus
    await bus.close()


@pytest.mark.parametrize("fault", ["kill", "freeze"])
async def test_losing_the_leader_under_load_loses_nothing_accepted(
    nodes: list[Node], bus: NatsBus, fault: str
) -> None:
    load_ = asyncio.create_task(publish(bus, 0, PUBLISHED))
    await asyncio.sleep(0)
    lost = await leader(nodes)
    if fault == "kill":
        lost.kill()
    else:
        lost.send(signal.SIGSTOP)
    try:
        await load_
        await publish(bus, PUBLISHED, PUBLISHED)
    finally:
        if fault == "kill":
            lost.start()
        else:
            lost.send(signal.SIGCONT)
    await lost.ready()

    assert sorted(set(await held(bus)), key=int) == [b"%d" % n for n in range(2 * PUBLISHED)]


async def test_without_a_majority_nothing_is_accepted_and_with_it_again_all_is(
    nodes: list[Node], bus: NatsBus
) -> None:
    await publish(bus, 0, 5)
    for node in nodes[1:]:
        node.kill()

    with pytest.raises(Transient):
        await bus.publish(SUBJECT, b"alone", id="alone", timeout_s=2.0)

    for node in nodes[1:]:
        node.start()
    await publish(bus, 5, 5)
    found = [raw for raw in await held(bus) if raw != b"alone"]
    assert found == [b"%d" % n for n in range(10)]


async def test_batches_and_blobs_are_whole_on_a_cluster(nodes: list[Node], bus: NatsBus) -> None:
    blob = await blobs.put(bus, "alice", b"x" * 400_000)
    ack = await bus.publish_batch([Outgoing(SUBJECT, b"%d" % n, f"id-{n}") for n in range(500)])

    assert await blobs.get(bus, "alice", blob.sha256, blob.size_bytes) == b"x" * 400_000
    assert await bus.erase(ack.seq) is True
    assert await bus.get(ack.seq) is None
    assert len(await held(bus)) == 499


async def test_the_whole_of_lamina_on_a_cluster_goes_on_when_a_server_dies(
    nodes: list[Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = tmp_path / "operator.json"
    credentials.write_text('{"user": "lamina", "password": "only-for-tests"}')
    url = ",".join(node.url for node in nodes)
    settings = BusConfig(url=url, credentials=str(credentials), replicas=3, max_bytes=64 * 1024 * 1024)
    monkeypatch.setenv("LAMINA_BUS_CREDENTIALS", str(credentials))
    home = Home(tmp_path / "home")

    async with (
        whole.daemon(home, Config(bus=settings)),
        Memory.open(space="alice", home=home.path, url=url) as memory,
    ):
        await memory.turn("user", "The orders are kept in PostgreSQL 16.", session="s")
        await memory.settled(timeout_s=30)
        (await leader(nodes)).kill()
        accepted = await memory.turn("user", "The invoices are kept in MariaDB.", session="s")
        async with asyncio.timeout(60):
            while True:
                hits = await memory.recall("invoices MariaDB", min_seq=accepted.seq or 0, deadline_s=5.0)
                if hits.status == "found":
                    break
        with_first = await memory.recall("orders PostgreSQL", deadline_s=5.0)

    assert hits.items[0].text == "The invoices are kept in MariaDB."
    assert with_first.items[0].text == "The orders are kept in PostgreSQL 16."


@pytest.mark.parametrize(
    ("bus", "why"), [(BusConfig(replicas=3), "needs a cluster"), (BusConfig(replicas=2), "1, 3")]
)
def test_replicas_that_cannot_be_are_refused(tmp_path: Path, bus: BusConfig, why: str) -> None:
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in structs.asdict(bus).items()]
    (tmp_path / "config.toml").write_text("[bus]\n" + "\n".join(lines) + "\n")

    with pytest.raises(Invalid, match=why):
        load(tmp_path / "config.toml", {})
