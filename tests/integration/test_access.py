"""Users with rights of their own: what a client of one space, and a service, can do, and above all cannot."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamina import events, ids
from lamina.bus import Outgoing, blobs
from lamina.bus.access import SAID, Grant, Grants, inbox_of, permissions
from lamina.bus.nats import Credentials, NatsBus, connect
from lamina.bus.server import Server
from lamina.bus.stream import ensure_stream
from lamina.cli.main import main
from lamina.client import Memory
from lamina.errors import Conflict, Denied, Invalid
from lamina.home import Home
from tests.support import whole

MIB = 1024 * 1024


def event(space: str, text: str, kind: str = "turn.recorded") -> tuple[str, bytes]:
    data = events.TurnRecorded(role="user", text=text)
    made = events.make(data, id=ids.uuid7(), space=space, time=datetime.now(UTC))
    return ids.event_subject(ids.token(space), kind), events.encode(made)


def mode(path: Path) -> int | None:
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else None


async def user(server: Server, grant: Grant) -> NatsBus:
    credentials = Credentials(user=grant.name, password=grant.password, inbox=inbox_of(grant.name))
    async with asyncio.timeout(20):
        while True:
            try:
                return await connect(server.url, credentials=credentials)
            except Denied:  # the server has not read its configuration again yet
                await asyncio.sleep(0.02)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(tmp_path)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def operator(server: Server) -> AsyncIterator[NatsBus]:
    bus = await connect(server.url, credentials=server.credentials)
    await ensure_stream(bus, max_bytes=64 * MIB)
    yield bus
    await bus.close()


@pytest.fixture
async def alice(server: Server, operator: NatsBus) -> AsyncIterator[NatsBus]:
    grant = server.grants.add("laptop", "space", "alice")
    server.reload()
    bus = await user(server, grant)
    yield bus
    await bus.close()


class TestClientOfASpace:
    async def test_publishes_texts_long_and_short_and_batches_in_its_space(
        self, alice: NatsBus, operator: NatsBus
    ) -> None:
        subject, data = event("alice", "hello")

        first = await alice.publish(subject, data, id="one")
        blob = await blobs.put(alice, "alice", b"x" * 300_000)
        again = await blobs.put(alice, "alice", b"x" * 300_000)
        batch = await alice.publish_batch([Outgoing(subject, data, "two"), Outgoing(subject, data, "three")])

        assert (first.seq, batch.seq) == (1, 6)
        assert blob == again
        assert await blobs.get(operator, "alice", blob.sha256, blob.size_bytes) == b"x" * 300_000

    async def test_writes_reads_erases_and_hears_nothing_of_others(self, alice: NatsBus, operator: NatsBus) -> None:
        subject, data = event("bob", "a secret of bob's")
        await operator.publish(subject, data)
        secret = await blobs.put(operator, "bob", b"s" * 300_000)
        own, mine = event("alice", "mine")

        async def handler(_: str, payload: bytes) -> bytes:
            return payload

        async with asyncio.timeout(30):
            for call in (
                alice.publish(subject, data, timeout_s=60),
                alice.publish_batch([Outgoing(own, mine), Outgoing(subject, data)], timeout_s=60),
                blobs.put(alice, "bob", b"s" * 300_000),
                blobs.get(alice, "bob", secret.sha256, secret.size_bytes),
                alice.get(1, timeout_s=60),
                alice.last(subject, timeout_s=60),
                alice.last("lamina.ev.>", timeout_s=60),
                alice.next("lamina.ev.>", 0, timeout_s=60),
                alice.info(timeout_s=60),
                alice.erase(1, timeout_s=60),
                alice.purge("lamina.ev.>", below=9, timeout_s=60),
                alice.request(ids.rpc_subject("bob", "recall"), b"{}", timeout_s=60),
                alice.serve(ids.rpc_subject("alice", "recall"), handler),
                alice.serve("lamina.rpc.>", handler),
                alice.listen("lamina.ev.>", lambda _, __: None),
                alice.listen(subject, lambda _, __: None),
                alice.listen("_INBOX.>", lambda _, __: None),
                alice.listen(f"{inbox_of('other')}.>", lambda _, __: None),
                alice.listen(ids.applied_subject("bob", "journal"), lambda _, __: None),
                alice.listen("$JS.EVENT.>", lambda _, __: None),
                alice.read([subject], after=0, name="spy").fetch(1, 60),
            ):
                with pytest.raises(Denied):
                    await call
        info = await operator.info()
        assert info.messages == 1 + 3, "what it tried left nothing behind"

    @pytest.mark.parametrize("kind", ["atoms.extracted", "memory.forgotten", "step.failed", "anything"])
    async def test_decides_nothing_and_erases_nothing_in_its_own_space(self, alice: NatsBus, kind: str) -> None:
        subject, data = event("alice", "x", kind)

        with pytest.raises(Denied):
            await alice.publish(subject, data)

    async def test_cannot_have_an_answer_written_into_another_log_or_inbox(
        self, alice: NatsBus, operator: NatsBus
    ) -> None:
        """Services answer inboxes alone. The server itself acknowledges wherever it is told to: what comes there is
        its own few bytes, which are no event, and nothing that the client chose."""
        own, data = event("alice", "mine")
        other, _ = event("bob", "forged")
        targets = (other, ids.event_subject("alice", "memory.forgotten"), "lamina.touch.journal.bob")
        heard: list[bytes] = []
        await operator.listen("lamina.touch.>", lambda _, payload: heard.append(payload))

        async def handler(_: str, payload: bytes) -> bytes:
            return payload

        await operator.serve("lamina.rpc.>", handler)
        for target in targets:
            alice.connection.send(ids.rpc_subject("alice", "recall"), b"forged", reply=target)
            alice.connection.send(own, data, reply=target)
        assert await alice.request(ids.rpc_subject("alice", "x"), b"ok", timeout_s=5) == b"ok"
        last = await alice.publish(own, data)

        stored = [message for seq in range(1, last.seq + 1) if (message := await operator.get(seq)) is not None]
        foreign = [message.data for message in stored if message.subject != own] + heard
        assert [raw for raw in foreign if not raw.startswith(b'{"stream":"LAMINA","seq":')] == []
        for raw in foreign:
            with pytest.raises(Invalid):
                events.decode(raw)

    async def test_is_cut_off_when_it_is_revoked(self, server: Server, alice: NatsBus, operator: NatsBus) -> None:
        subject, data = event("alice", "x")
        await alice.publish(subject, data)

        server.grants.remove("laptop")
        server.reload()

        async with asyncio.timeout(20):
            while alice.connected:  # noqa: ASYNC110 - the server tells by closing
                await asyncio.sleep(0.01)
        await operator.publish(subject, data)


async def test_a_service_reads_the_log_and_publishes_its_own_decisions_alone(
    server: Server, operator: NatsBus
) -> None:
    await operator.publish(*event("alice", "hello"))
    grant = server.grants.add("gpu", "service", "atoms", ("atoms.extracted",))
    server.reload()
    bus = await user(server, grant)
    try:
        assert (await bus.info()).messages == 1
        assert len(await bus.read(["lamina.ev.>"], after=0, name="gpu").fetch(1, 10)) == 1
        await bus.publish(*event("alice", "x", "atoms.extracted"))
        await bus.publish(*event("alice", "x", "step.failed"))
        for kind in ("turn.recorded", "persona.revised", "memory.forgotten"):
            with pytest.raises(Denied):
                await bus.publish(*event("alice", "x", kind))
        with pytest.raises(Denied):
            await bus.erase(1)
        with pytest.raises(Denied):
            await bus.purge("lamina.ev.>", below=5)
    finally:
        await bus.close()


@pytest.mark.parametrize("space", ["alice", "Alice", "서울", "a.b", "*", ">", "", "x" * 40])
def test_no_name_of_a_space_widens_what_is_allowed(space: str) -> None:
    allowed = permissions(Grant(name="n", role="space", of=space, password="p"))
    token = ids.token(space)

    for subject in (*allowed.publish, *allowed.subscribe[1:]):
        assert f".{ids.lane(token)}.{token}." in subject
        assert subject.count("*") + subject.count(">") <= 1
    assert len([one for one in allowed.publish if one.startswith("lamina.ev.")]) == len(SAID)


@pytest.mark.parametrize("name", ["", "lamina", "A", "a b", "a.b", "*", ">", "-a", "a" * 64, 'a"', "é"])
def test_a_name_that_could_mean_more_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid, match="no name"):
        Grants(tmp_path).add(name, "space", "alice")


def test_grants_are_kept_for_their_owner_alone_and_a_name_is_taken_once(tmp_path: Path) -> None:
    grants = Grants(tmp_path / "bus")
    made = grants.add("laptop", "space", "서울")

    assert grants.load() == (made,)
    assert mode(grants.path) == 0o600
    assert made.password not in repr(made)
    with pytest.raises(Conflict):
        grants.add("laptop", "space", "other")
    with pytest.raises(Invalid, match="no user"):
        grants.remove("nobody")


async def test_by_hand_a_space_is_opened_to_a_client_and_closed_again(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lamina(*words: str) -> dict[str, object]:
        assert main(["--home", str(home.path), "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]

    async with whole.daemon(home):
        made = await asyncio.to_thread(lamina, "access", "grant", "laptop", "--space", "alice")
        file = Path(str(made["file"]))
        assert mode(file) == 0o600
        monkeypatch.setenv("LAMINA_BUS_CREDENTIALS", str(file))
        async with Memory.open(space="alice", home=tmp_path / "away", url=str(made["url"])) as memory:
            said = await memory.turn("user", "The orders are in PostgreSQL 16.", session="s", turn_id="t1")
            with pytest.raises(Conflict):
                await memory.turn("user", "Something else.", session="s", turn_id="t1")
            stub = await memory.tool_result("read_file", {}, "line\n" * 100_000, session="s", call_id="c1")
            await memory.settled()
            hits = await memory.recall("PostgreSQL", min_seq=said.seq)
            part = await memory.read(stub.node, lines="1-2")
        async with Memory.open(space="bob", home=tmp_path / "away", url=str(made["url"])) as memory:
            with pytest.raises(Denied):
                await memory.turn("user", "x", session="s")
            with pytest.raises(Denied):
                await memory.recall("PostgreSQL")
        monkeypatch.delenv("LAMINA_BUS_CREDENTIALS")

        users = await asyncio.to_thread(lamina, "access", "list")
        await asyncio.to_thread(main, ["--home", str(home.path), "access", "list", "--server-config"])
        block = capsys.readouterr().out
        await asyncio.to_thread(lamina, "access", "revoke", "laptop")
        with pytest.raises(Denied):
            await connect(str(made["url"]), credentials=Credentials("laptop", "whatever"))

    assert [item.text for item in hits.items] == ["The orders are in PostgreSQL 16."]
    assert part.text.count("line") == 2
    assert [one["name"] for one in users["users"]] == ["laptop"]  # type: ignore[attr-defined]
    assert mode(file) is None
    assert block.startswith("authorization {")
    assert 'user: "laptop"' in block
