"""What a real server does to a bus at the worst moment: each hazard was measured before it was tested."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from lamina.bus import Message, Outgoing, api
from lamina.bus.connection import Connection
from lamina.bus.local import local_bus
from lamina.bus.nats import Credentials, NatsBus, connect
from lamina.bus.reader import NatsReader
from lamina.bus.server import Server
from lamina.bus.stream import ensure_stream
from lamina.errors import Busy, Conflict, Denied, Invalid, LogFull, Timeout, TooLarge, Unavailable

SUBJECT = "lamina.ev.7.alice.turn-recorded"
MIB = 1024 * 1024

Running = tuple[Server, NatsBus]


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with local_bus(tmp_path, max_bytes=256 * MIB) as found:
        yield found


async def change(bus: NatsBus, connected: bool) -> None:
    """Return once the bus is, or is no longer, connected."""
    changed = asyncio.Event()
    bus.connection.watchers.add(changed.set)
    try:
        while bus.connected is not connected:
            changed.clear()
            await asyncio.wait_for(changed.wait(), 20)
    finally:
        bus.connection.watchers.discard(changed.set)


async def kill(server: Server, bus: NatsBus) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    await change(bus, connected=False)


def freeze(pid: int) -> None:
    """Stop a child; returns once it stands still."""
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


async def publish_until_taken(bus: NatsBus, data: bytes, id: str) -> int:
    """As a client does: with the same id until it is taken."""
    async with asyncio.timeout(30):
        while True:
            try:
                return (await bus.publish(SUBJECT, data, id=id, timeout_s=1.0)).seq
            except (Unavailable, Timeout):
                await change(bus, connected=True)


async def read_all(reader: NatsReader, last: int) -> list[Message]:
    found: list[Message] = []
    async with asyncio.timeout(30):
        while not found or found[-1].seq < last:
            found += await reader.fetch(7, 60)
    return found


async def consumers(bus: NatsBus) -> list[str]:
    reply = await bus.connection.ask("$JS.API.CONSUMER.NAMES.LAMINA", b"{}", timeout_s=5)
    names: list[str] | None = msgspec.json.decode(reply.data)["consumers"]
    return names or []


class TestRestart:
    async def test_a_waiting_fetch_goes_on_behind_a_restart(
        self, running: Running, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lamina.bus.reader.SILENCE_S", 3600.0)  # the lost connection alone must do
        server, bus = running
        reader = bus.read([SUBJECT], after=0, name="waiting")
        await bus.publish(SUBJECT, b"before")
        await reader.fetch(1, 60)
        async with asyncio.timeout(20):
            waiting = asyncio.create_task(reader.fetch(10, 3600))
            await kill(server, bus)
            seq = await publish_until_taken(bus, b"after", "a")

            assert [(m.seq, m.data) for m in await waiting] == [(seq, b"after")]

    async def test_reading_and_writing_through_kills_gives_each_message_once(self, running: Running) -> None:
        server, bus = running
        reader = bus.read(["lamina.ev.>"], after=0, name="through")
        found: list[bytes] = []

        async def follow() -> None:
            while len(found) < 400:
                found.extend(m.data for m in await reader.fetch(50, 60))

        async with asyncio.timeout(60):
            following = asyncio.create_task(follow())
            for n in range(400):
                if n in (100, 250):
                    await kill(server, bus)
                await publish_until_taken(bus, b"%d" % n, f"id-{n}")
            await following

        assert found == [b"%d" % n for n in range(400)]
        assert server.restarts == 2

    async def test_what_was_accepted_is_there_after_a_kill(self, running: Running) -> None:
        server, bus = running
        accepted = {}
        publishing = [
            asyncio.create_task(bus.publish(SUBJECT, b"%d" % n, id=f"{n}", timeout_s=5)) for n in range(300)
        ]
        await asyncio.wait(publishing[:100])
        await kill(server, bus)
        for n, outcome in enumerate(await asyncio.gather(*publishing, return_exceptions=True)):
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, Timeout | Unavailable)
            else:
                accepted[outcome.seq] = b"%d" % n
        await change(bus, connected=True)

        assert len(accepted) >= 100
        async with asyncio.timeout(20):
            for seq, data in accepted.items():
                message = await bus.get(seq)
                assert message is not None
                assert message.data == data

    async def test_ids_are_known_across_a_restart(self, running: Running) -> None:
        server, bus = running
        first = await bus.publish(SUBJECT, b"x", id="same")
        await kill(server, bus)

        assert await publish_until_taken(bus, b"x", "same") == first.seq
        assert (await bus.info()).messages == 1

    async def test_away_is_told_at_once_and_nothing_is_kept_for_later(self, running: Running) -> None:
        server, bus = running
        await server.stop()
        await change(bus, connected=False)
        async with asyncio.timeout(5):
            for call in (
                bus.publish(SUBJECT, b"never", timeout_s=60),
                bus.publish_batch([Outgoing(SUBJECT, b"never")] * 3, timeout_s=60),
                bus.get(1, timeout_s=60),
                bus.request("lamina.rpc.1", b"", timeout_s=60),
            ):
                with pytest.raises(Unavailable):
                    await call
            await bus.notify("lamina.applied.1.a.journal", b"1")
        reader = bus.read([SUBJECT], after=0, name="away")
        with pytest.raises(Unavailable):
            await reader.fetch(1, 0.2)
        await server.start()
        await change(bus, connected=True)

        assert (await bus.info()).last_seq == 0

    async def test_a_frozen_server_costs_the_deadline_and_no_more(self, running: Running) -> None:
        server, bus = running
        assert server.pid is not None
        freeze(server.pid)
        try:
            with pytest.raises(Timeout):
                await bus.publish(SUBJECT, b"frozen", id="frozen", timeout_s=0.1)
            under_way = asyncio.create_task(bus.publish(SUBJECT, b"lost", id="lost", timeout_s=60))
            await asyncio.sleep(0)
        finally:
            os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(Timeout, match="same id"):
            await under_way
        await change(bus, connected=True)

        seqs = [await publish_until_taken(bus, b"x", id) for id in ("frozen", "lost")]
        assert sorted(seqs) == [1, 2]

    async def test_served_and_listened_subjects_outlive_a_restart(self, running: Running) -> None:
        server, bus = running
        heard: asyncio.Queue[bytes] = asyncio.Queue()

        async def handler(subject: str, data: bytes) -> bytes:
            return data.upper()

        await bus.serve("lamina.rpc.>", handler)
        await bus.listen("lamina.applied.>", lambda _, data: heard.put_nowait(data))
        await kill(server, bus)
        await change(bus, connected=True)

        assert await bus.request("lamina.rpc.1", b"x", timeout_s=5) == b"X"
        await bus.notify("lamina.applied.x", b"1")
        assert await asyncio.wait_for(heard.get(), 5) == b"1"


class TestReader:
    async def test_a_deleted_consumer_is_made_again(self, running: Running) -> None:
        _, bus = running
        reader = bus.read([SUBJECT], after=0, name="deleted")
        await bus.publish(SUBJECT, b"1")
        assert len(await reader.fetch(10, 60)) == 1
        async with asyncio.timeout(20):
            waiting = asyncio.create_task(reader.fetch(10, 3600))
            for name in await consumers(bus):
                await bus.connection.ask(f"{api.CONSUMER_DELETE}.{name}", b"", timeout_s=5)
            await bus.publish(SUBJECT, b"2")

            assert [m.seq for m in await waiting] == [2]

    async def test_a_message_lost_on_the_way_is_read_again(self, running: Running) -> None:
        _, bus = running
        for n in range(20):
            await bus.publish(SUBJECT, b"%d" % n)
        reader = bus.read([SUBJECT], after=0, name="gap")
        hear = bus.connection._process_msg
        lost: list[bytes] = []

        async def lossy(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
            if data == b"7" and not lost:
                lost.append(data)
            else:
                await hear(sid, subject, reply, data, headers)

        bus.connection._process_msg = lossy  # type: ignore[method-assign]

        assert [m.seq for m in await read_all(reader, 20)] == list(range(1, 21))
        assert lost

    async def test_a_consumer_that_fell_silent_is_made_again(
        self, running: Running, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lamina.bus.reader.SILENCE_S", 0.2)
        _, bus = running
        reader = bus.read([SUBJECT], after=0, name="silent")
        assert await reader.fetch(1, 0.1) == []
        (first,) = await consumers(bus)
        hear = bus.connection._process_msg

        async def deaf(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
            if first.encode() not in subject + reply:
                await hear(sid, subject, reply, data, headers)

        bus.connection._process_msg = deaf  # type: ignore[method-assign]
        await bus.publish(SUBJECT, b"x")

        assert [m.seq for m in await reader.fetch(1, 60)] == [1]

    async def test_a_server_that_begins_too_early_gives_nothing_twice(self, running: Running) -> None:
        _, bus = running
        for n in range(4):
            await bus.publish(SUBJECT, b"%d" % n)
        ask = bus.connection.ask

        async def early(subject: str, data: bytes, *, headers: bytes = b"", timeout_s: float) -> api.Reply:
            return await ask(subject, data.replace(b'"opt_start_seq":3', b'"opt_start_seq":1'), timeout_s=timeout_s)

        bus.connection.ask = early  # type: ignore[method-assign]

        assert [m.seq for m in await read_all(bus.read([SUBJECT], after=2, name="early"), 4)] == [3, 4]

    async def test_large_messages_are_read_within_the_bytes_asked_for(
        self, running: Running, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, bus = running
        for n in range(30):
            await bus.publish(SUBJECT, bytes([n]) * (MIB - 200))
        reader = bus.read([SUBJECT], after=0, name="large")

        assert [(m.seq, m.data[0]) for m in await read_all(reader, 30)] == [(n + 1, n) for n in range(30)]
        assert len(await consumers(bus)) == 1
        assert "ended" not in capsys.readouterr().out

    async def test_a_closed_reader_leaves_no_consumer(self, running: Running) -> None:
        _, bus = running
        reader = bus.read([SUBJECT], after=0, name="journal of alice.*")
        await bus.publish(SUBJECT, b"1")
        await reader.fetch(1, 60)
        assert [name.partition("-")[0] for name in await consumers(bus)] == ["journal_of_alice__"]
        await reader.close()

        async with asyncio.timeout(10):  # told without waiting for an answer, and long before it is inactive
            while await consumers(bus):
                pass

    async def test_a_new_epoch_is_a_conflict_and_never_a_silent_gap(self, running: Running) -> None:
        _, bus = running
        for n in range(3):
            await bus.publish(SUBJECT, b"%d" % n)
        reader = bus.read([SUBJECT], after=0, name="epoch")
        await read_all(reader, 3)
        await bus.connection.ask("$JS.API.STREAM.DELETE.LAMINA", b"", timeout_s=5)
        await ensure_stream(bus, max_bytes=MIB)
        async with asyncio.timeout(20):
            with pytest.raises(Conflict, match="epoch"):
                await reader.fetch(1, 3600)
            with pytest.raises(Conflict, match="epoch"):
                await reader.fetch(1, 3600)


class TestStore:
    async def test_a_full_log_says_so_and_keeps_what_it_has(self, tmp_path: Path) -> None:
        async with local_bus(tmp_path, max_bytes=64 * 1024) as (_, bus):
            with pytest.raises(LogFull, match="max_bytes"):
                await asyncio.gather(*(bus.publish(SUBJECT, b"x" * 1000) for _ in range(100)))
            before = await bus.info()
            with pytest.raises(LogFull):
                await bus.publish_batch([Outgoing(SUBJECT, b"x" * 1000)] * 3)
            assert await bus.info() == before
            assert await bus.get(1) is not None

            await ensure_stream(bus, max_bytes=MIB)
            assert (await bus.publish(SUBJECT, b"x")).seq == before.last_seq + 1

    async def test_erased_bytes_are_gone_from_the_disk(self, tmp_path: Path) -> None:
        def on_disk(text: bytes) -> bool:
            return any(text in path.read_bytes() for path in tmp_path.rglob("*.blk"))

        async with local_bus(tmp_path) as (_, bus):
            await bus.publish(SUBJECT, b"a secret to be forgotten")
            await bus.publish(SUBJECT, b"a fact to be kept")
            assert on_disk(b"a secret to be forgotten")
            await bus.erase(1)

            assert not on_disk(b"a secret to be forgotten")
            assert on_disk(b"a fact to be kept")

    async def test_a_batch_that_lost_a_message_stores_nothing(self, running: Running) -> None:
        _, bus = running
        send = bus.connection.send

        def lossy(subject: str, data: bytes, *, headers: bytes = b"", reply: str = "") -> None:
            if data != b"2":
                send(subject, data, headers=headers, reply=reply)

        bus.connection.send = lossy  # type: ignore[method-assign]
        with pytest.raises(Busy):
            await bus.publish_batch([Outgoing(SUBJECT, b"%d" % n, f"{n}") for n in range(5)])
        bus.connection.send = send  # type: ignore[method-assign]

        assert (await bus.info()).last_seq == 0
        assert (await bus.publish_batch([Outgoing(SUBJECT, b"x", f"{n}") for n in range(5)])).seq == 5

    async def test_many_batches_at_once_wait_for_each_other(self, running: Running) -> None:
        """The server takes 50 open batches of a stream; large ones are interleaved while they are sent."""
        _, bus = running
        batch = [Outgoing(SUBJECT, b"x" * 100_000)] * 12
        acks = await asyncio.gather(*(bus.publish_batch(batch) for _ in range(70)))

        assert sorted(ack.seq for ack in acks) == [12 * (n + 1) for n in range(70)]

    async def test_a_repeated_batch_is_a_conflict_and_stores_nothing(self, running: Running) -> None:
        _, bus = running
        batch = [Outgoing(SUBJECT, b"x", f"{n}") for n in range(5)]
        await bus.publish_batch(batch)
        with pytest.raises(Conflict):
            await bus.publish_batch(batch)

        assert (await bus.info()).last_seq == 5

    async def test_a_server_with_a_small_payload_limit(self, tmp_path: Path) -> None:
        class Small(Server):
            def _config(self, port: int) -> str:
                return super()._config(port).replace("max_payload: 1MB", "max_payload: 2KB")

        server = Small(tmp_path)
        await server.start()
        bus = await connect(server.url, credentials=server.credentials)
        try:
            await ensure_stream(bus, max_bytes=MIB)
            for size in range(1950, 2050):  # with its headers, around the limit: never may the server see more
                try:
                    await bus.publish(SUBJECT, b"x" * size, id="an-id")
                except TooLarge as error:
                    assert "2048" in str(error)  # noqa: PT017 - both outcomes are right
            assert bus.connected
        finally:
            await bus.close()
            await server.stop()


class TestStream:
    async def test_a_standing_stream_is_left_as_it_is(self, running: Running) -> None:
        _, bus = running
        before = await bus.stream()

        assert (await ensure_stream(bus)).epoch == bus.epoch
        assert (await bus.stream()).config == before.config

    async def test_a_limit_below_what_the_log_holds_drops_nothing(self, tmp_path: Path) -> None:
        async with local_bus(tmp_path, max_bytes=MIB) as (_, bus):
            for _ in range(10):
                await bus.publish(SUBJECT, b"x" * 1000)
            await ensure_stream(bus, max_bytes=5000)
            with pytest.raises(LogFull):
                await bus.publish(SUBJECT, b"x")
        async with local_bus(tmp_path) as (_, bus):
            info = await bus.info()

        assert (info.messages, info.max_bytes) == (10, 5000)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("discard", "old"),
            ("subjects", ["lamina.ev.>"]),
            ("duplicate_window", 10**9),
            ("allow_atomic", False),
            ("max_msgs", 10),
            ("max_age", 3600 * 10**9),
            ("deny_purge", True),
            ("metadata", {"lamina-epoch": "e", "lamina-lanes": "64"}),
            ("metadata", {"lamina-lanes": "256"}),
        ],
    )
    async def test_a_stream_that_breaks_a_promise_is_refused(self, running: Running, key: str, value: object) -> None:
        _, bus = running
        config = (await bus.stream()).config | {key: value}
        await bus.connection.ask("$JS.API.STREAM.DELETE.LAMINA", b"", timeout_s=5)
        await bus.connection.ask(api.STREAM_CREATE, msgspec.json.encode(config), timeout_s=5)

        with pytest.raises(Invalid, match=key if key != "metadata" else "lamina-"):
            await ensure_stream(bus)

    async def test_without_the_stream_every_call_is_unavailable(self, running: Running) -> None:
        _, bus = running
        await bus.connection.ask("$JS.API.STREAM.DELETE.LAMINA", b"", timeout_s=5)

        for call in (bus.publish(SUBJECT, b"x"), bus.info(), bus.get(1), bus.last(SUBJECT)):
            with pytest.raises(Unavailable):
                await call


class TestRights:
    """A user that may follow and ask, and one that may only publish events of one lane."""

    @pytest.fixture
    async def restricted(self, tmp_path: Path) -> AsyncIterator[tuple[Server, NatsBus]]:
        class Restricted(Server):
            def _config(self, port: int) -> str:
                users = """
                  users: [
                    {user: "lamina", password: "%s"}
                    {user: "writer", password: "w", permissions: {
                       publish: ["lamina.ev.7.>", "$JS.API.STREAM.INFO.LAMINA"], subscribe: ["_INBOX.>"]}}
                    {user: "deaf", password: "d", permissions: {publish: ">", subscribe: ["nothing"]}}
                    {user: "puller", password: "p", permissions: {
                       publish: {allow: ">", deny: ["$JS.API.CONSUMER.MSG.NEXT.>"]}, subscribe: ">"}}
                  ]
                """
                head, _, rest = super()._config(port).partition("  users: [")
                tail = rest[rest.index("\n  ]\n") + len("\n  ]\n") :]
                return head + users % self.credentials.password + tail

        server = Restricted(tmp_path)
        await server.start()
        admin = await connect(server.url, credentials=server.credentials)
        await ensure_stream(admin, max_bytes=MIB)
        yield server, admin
        await admin.close()
        await server.stop()

    async def test_what_is_not_allowed_is_denied_at_once(self, restricted: tuple[Server, NatsBus]) -> None:
        server, admin = restricted
        bus = await connect(server.url, credentials=Credentials("writer", "w"))
        other = "lamina.ev.8.bob.turn-recorded"

        async def handler(subject: str, data: bytes) -> bytes:
            return data

        async with asyncio.timeout(10):
            await bus.publish(SUBJECT, b"allowed")
            for call in (
                bus.publish(other, b"x", timeout_s=60),
                bus.publish_batch([Outgoing(SUBJECT, b"x"), Outgoing(other, b"x")], timeout_s=60),
                bus.erase(1, timeout_s=60),
                bus.get(1, timeout_s=60),
                bus.request("lamina.rpc.7.a.recall", b"", timeout_s=60),
                bus.serve("lamina.rpc.>", handler),
                bus.listen("lamina.applied.>", lambda _, __: None),
                bus.read([SUBJECT], after=0, name="denied").fetch(1, 60),
            ):
                with pytest.raises(Denied):
                    await call
            await bus.publish(SUBJECT, b"still connected")
        await bus.close()
        assert (await admin.info()).messages == 2

    async def test_a_reader_that_may_not_pull_is_denied(self, restricted: tuple[Server, NatsBus]) -> None:
        server, _ = restricted
        bus = await connect(server.url, credentials=Credentials("puller", "p"))
        async with asyncio.timeout(10):
            with pytest.raises(Denied):
                await bus.read([SUBJECT], after=0, name="denied").fetch(1, 60)
        await bus.close()

    async def test_a_user_that_cannot_hear_answers_is_denied_on_connecting(
        self, restricted: tuple[Server, NatsBus]
    ) -> None:
        with pytest.raises(Denied):
            await connect(restricted[0].url, credentials=Credentials("deaf", "d"))


class TestConnect:
    @pytest.mark.parametrize("wrong", [None, Credentials("lamina", "wrong"), Credentials("nobody", "x")])
    async def test_wrong_credentials_are_denied(self, running: Running, wrong: Credentials | None) -> None:
        async with asyncio.timeout(10):
            with pytest.raises(Denied):
                await connect(running[0].url, credentials=wrong, timeout_s=60)

    async def test_nobody_there_is_unavailable(self) -> None:
        with pytest.raises(Unavailable, match="no bus at"):
            await connect("nats://127.0.0.1:1", timeout_s=0.3)

    @pytest.mark.parametrize("url", ["", "nats://", "http://127.0.0.1:1", "nats://127.0.0.1:99999"])
    async def test_a_url_that_is_none_is_invalid(self, url: str) -> None:
        with pytest.raises(Invalid):
            await connect(url, timeout_s=5)

    async def test_a_missing_credentials_file_is_invalid(self, running: Running, tmp_path: Path) -> None:
        with pytest.raises(Invalid):
            await connect(running[0].url, credentials=Credentials(creds_file=str(tmp_path / "none.creds")))

    def test_a_password_is_not_shown(self) -> None:
        assert "hunter2" not in repr(Credentials("lamina", "hunter2"))

    async def test_an_unknown_error_of_the_server_means_connecting_again(self, running: Running) -> None:
        """nats-py closes for good on an error line it does not know."""
        _, bus = running
        assert isinstance(bus.connection, Connection)
        await bus.connection._process_err("'maximum connections exceeded'")
        await change(bus, connected=True)

        assert (await bus.publish(SUBJECT, b"x")).seq == 1


async def test_a_socket_opened_in_vain_is_closed_before_the_next() -> None:
    """A server that goes away, and in its place one that speaks something else."""
    open_now, opened, most = 0, 0, 0
    enough, ended = asyncio.Event(), asyncio.Event()

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, opened, most
        opened, open_now = opened + 1, open_now + 1
        most = max(most, open_now)
        if opened == 1:
            writer.write(b'INFO {"server_id":"a","version":"2.12.0","max_payload":1048576,"headers":true}\r\n')
            for _ in range(2):  # the client's own, and that of its first subscription
                await reader.readuntil(b"PING\r\n")
                writer.write(b"PONG\r\n")
        else:
            writer.write(b"this is no bus\r\n")
            if opened == 4:
                enough.set()
            await reader.read()
        open_now -= 1
        writer.close()
        await writer.wait_closed()
        if enough.is_set() and not open_now:
            ended.set()

    listening = await asyncio.start_server(server, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    connection = Connection()
    async with listening:
        await connection.open([f"nats://127.0.0.1:{port}"], {}, timeout_s=20)
        await asyncio.wait_for(enough.wait(), 20)
        await connection.close()
        await asyncio.wait_for(ended.wait(), 20)
    assert most == 1
