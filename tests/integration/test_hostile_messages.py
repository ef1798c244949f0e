"""Messages on the bus that no client of ours would send: each costs its sender, and nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lamina import ids
from lamina.bus.local import local_bus
from lamina.bus.nats import NatsBus, connect
from lamina.bus.server import read_credentials
from lamina.client import Memory
from lamina.home import Home
from tests.support import whole

ODD = (
    b"\xff",
    b"\xed\xa0\x80",  # a lone surrogate
    b"a_zz",  # no encoded id
    b"_00",
    b"..".strip(b".") + b"x" * 900,
    "서울".encode(),
    b"%s%d{}",
)


def raw_publish(bus: NatsBus, subject: bytes, data: bytes, reply: bytes = b"") -> None:
    """A message as bytes, past every check of ours."""
    connection = bus.connection
    message = b"PUB " + subject + b" " + reply + b" %d\r\n" % len(data) + data + b"\r\n"
    connection._pending += [message]
    connection._pending_data_size += len(message)
    connection.flush_now()


async def flushed(bus: NatsBus) -> None:
    """Return once the server has had everything that was sent before."""
    await bus.info()


async def test_a_connection_outlives_subjects_that_are_no_text(tmp_path: Path) -> None:
    async with local_bus(tmp_path, max_bytes=1024 * 1024) as (_, bus):

        async def echo(_: str, payload: bytes) -> bytes:
            return payload

        heard: list[str] = []
        await bus.serve("lamina.rpc.>", echo)
        await bus.listen("lamina.applied.>", lambda subject, _: heard.append(subject))
        for odd in (b"\xff", b"\xed\xa0\x80"):
            raw_publish(bus, b"lamina.rpc.1.a." + odd, b"x", b"_INBOX.x.\xfe")
            raw_publish(bus, b"lamina.applied.1.a." + odd, b"x")
            raw_publish(bus, b"lamina.ev.1.a." + odd, b"x")

        assert await bus.request("lamina.rpc.1.a.b", b"ok", timeout_s=5) == b"ok"
        found = await bus.read(["lamina.ev.>"], after=0, name="r").fetch(2, 5)
        assert [message.seq for message in found] == [1, 2]
        assert len(heard) == 2


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{}", b"[" * 100_000, b'{"type":"turn.recorded"}', b"null"])
async def test_a_daemon_goes_on_whatever_stands_on_its_subjects(home: Home, data: bytes) -> None:
    async with whole.daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.turn("user", "The orders are in PostgreSQL 16.", session="s")
        runtime = home.runtime()
        assert runtime is not None
        bus = await connect(runtime.url, credentials=read_credentials(Path(runtime.credentials)))
        lane = ids.lane("alice")
        for odd in ODD:
            raw_publish(bus, b"lamina.ev.%d.alice." % lane + odd, data)
            raw_publish(bus, b"lamina.ev.%d." % lane + odd + b".turn-recorded", data)
            raw_publish(bus, b"lamina.ev." + odd + b".alice.turn-recorded", data)
            raw_publish(bus, b"lamina.blob.%d.alice." % lane + odd, data)
            raw_publish(bus, b"lamina.rpc.%d.alice." % lane + odd, data, b"_INBOX.nobody." + odd)
            raw_publish(bus, b"lamina.rpc.%d." % lane + odd + b".recall", data, b"_INBOX.nobody.1")
            for service in (b"journal", b"atoms", odd):
                raw_publish(bus, b"lamina.touch." + service + b"." + odd, data)
                raw_publish(bus, b"lamina.applied.%d." % lane + odd + b"." + service, data)
        for verb in (b"recall", b"why", b"known", b"settled", b"read", b"turns", b"atoms"):
            raw_publish(bus, b"lamina.rpc.%d.alice." % lane + verb, data, b"_INBOX.nobody.1")
        await flushed(bus)

        accepted = await memory.turn("user", "The invoices are in MariaDB.", session="s")
        async with asyncio.timeout(60):
            await memory.settled(timeout_s=50)
        hits = await memory.recall("invoices MariaDB", min_seq=accepted.seq or 0, deadline_s=10)
        await bus.close()

    assert hits.items[0].text == "The invoices are in MariaDB."
    assert {folder.name for folder in home.spaces.iterdir()} <= {"alice", "_00"}, "no folder of a name that is none"
