"""Publishing through the whole thing: log or outbox, ids, order, and every wrong input."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from lamina import config, events, ids, times
from lamina.bus.local import local_bus
from lamina.client import Memory
from lamina.client.outbox import Outbox, Waiting, orphans
from lamina.errors import Closed, Conflict, Invalid, LaminaError, LogFull, OutboxFull, TooLarge
from lamina.events import TurnRecorded
from lamina.home import Home
from lamina.records import Accepted
from tests.support.toy import rows, until, view_file
from tests.support.whole import blob_path, daemon, lines, outbox_files, sources, texts

Publish = Callable[[Memory], Awaitable[Any]]


@pytest.fixture
async def alice(home: Home) -> AsyncIterator[Memory]:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        yield memory


async def test_what_is_accepted_is_in_the_log_the_ledger_and_the_memory(home: Home, alice: Memory) -> None:
    first = await alice.turn("user", "We chose PostgreSQL.", session="s1", name="Ada", turn_id="t1")
    second = await alice.turn("assistant", "네, 데이터베이스는 PostgreSQL입니다.", session="s1")
    ended = await alice.end_session("s1")
    stated = await alice.remember("いつも日本語で答えてください。")
    await alice.settled(10)

    assert [first.seq, second.seq, ended.seq, stated.seq] == [1, 2, 3, 4]
    assert [line["seq"] for line in sources(home, "alice")] == [1, 2, 3, 4]
    assert [line["event"]["type"] for line in sources(home, "alice")] == [
        "turn.recorded",
        "turn.recorded",
        "session.ended",
        "memory.stated",
    ]
    for query, id in (("database PostgreSQL?", first.id), ("데이터베이스", second.id), ("日本語", stated.id)):
        hits = await alice.recall(query)
        assert hits.status == "found"
        assert id in {one for item in hits.items for one in (item.id, *item.sources)}
    assert [link.id for link in await alice.why("t1")] == [first.id]


async def test_publishing_again_is_one_event_and_other_text_a_conflict(home: Home, alice: Memory) -> None:
    first = await alice.turn("user", "tea", session="s", turn_id="t", time="2026-01-01T00:00:00Z")
    again = await alice.turn("user", "tea", session="s", turn_id="t")
    await alice.settled(10)
    later = await alice.turn("user", "tea", session="s", turn_id="t")
    elsewhere = await alice.turn("user", "tea", session="other", turn_id="t")

    assert first == again == later
    assert elsewhere.id != first.id
    with pytest.raises(Conflict, match="other content"):
        await alice.turn("user", "coffee", session="s", turn_id="t")
    await alice.settled(10)
    assert texts(home, "alice") == ["tea", "tea"]


async def test_a_conflict_is_seen_at_once_and_long_after(home: Home) -> None:
    """Within the dedup window the log knows the id; after it the journal does."""
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.turn("user", "tea", session="s", turn_id="t")
        with pytest.raises(Conflict):
            await memory.turn("user", "coffee", session="s", turn_id="t")
        await memory.settled(10)
        subject = ids.event_subject("alice", "turn.recorded")
        bus = memory._link.bus
        stored = await bus.get(1)
        assert stored is not None
        await bus.publish(subject, stored.data)  # as one that was sent again after the window
        await bus.publish(subject, stored.data.replace(b'"text":"tea"', b'"text":"tee"'))  # damaged on its way
        other = events.make(
            TurnRecorded(role="user", text="tee"),
            id=ids.source_id("alice", "s", "t", "turn.recorded"),
            space="alice",
            session="s",
            time=times.aware(None),
        )
        late = await bus.publish(subject, events.encode(other))
        await memory.settled(10)

        assert texts(home, "alice") == ["tea", "tee"], "what came second is no memory, and is kept all the same"
        assert len([line for line in lines(home, "alice") if "malformed" in line]) == 1
        assert rows(view_file(home, "alice", "journal"), "SELECT text FROM turns") == [("tea",)]
        assert rows(view_file(home, "alice", "journal"), "SELECT seq FROM conflicts") == [(late.seq,)]


async def test_without_an_id_nothing_is_merged(home: Home, alice: Memory) -> None:
    accepted = [await alice.turn("user", "again", session="s") for _ in range(3)]
    await alice.settled(10)

    assert len({one.id for one in accepted}) == 3
    assert texts(home, "alice") == ["again"] * 3


async def test_many_at_once_and_in_order_one_after_another(home: Home, alice: Memory) -> None:
    for n in range(20):
        await alice.turn("user", f"one {n}", session="one")
    await asyncio.gather(*(alice.turn("user", f"many {n}", session="many") for n in range(100)))
    await alice.settled(10)

    said = texts(home, "alice")
    assert said[:20] == [f"one {n}" for n in range(20)]
    assert sorted(said[20:]) == sorted(f"many {n}" for n in range(100))


BAD: list[tuple[str, type[LaminaError], Publish]] = [
    ("empty text", Invalid, lambda m: m.turn("user", "", session="s")),
    ("blank text", Invalid, lambda m: m.turn("user", " \n\t", session="s")),
    ("no text", Invalid, lambda m: m.turn("user", None, session="s")),  # type: ignore[arg-type]
    ("a number", Invalid, lambda m: m.turn("user", 5, session="s")),  # type: ignore[arg-type]
    ("a lone surrogate", Invalid, lambda m: m.turn("user", "a\ud800", session="s")),
    ("100 MB", TooLarge, lambda m: m.turn("user", "x" * 100_000_000, session="s")),
    ("no session", Invalid, lambda m: m.turn("user", "hi", session="")),
    ("session of 10 kB", TooLarge, lambda m: m.turn("user", "hi", session="s" * 10_000)),
    ("session with a surrogate", Invalid, lambda m: m.turn("user", "hi", session="\udfff")),
    ("session that is none", Invalid, lambda m: m.turn("user", "hi", session=None)),  # type: ignore[arg-type]
    ("unknown role", Invalid, lambda m: m.turn("robot", "hi", session="s")),
    ("role of another type", Invalid, lambda m: m.turn([], "hi", session="s")),  # type: ignore[arg-type]
    ("naive time", Invalid, lambda m: m.turn("user", "hi", session="s", time=datetime(2026, 1, 1))),  # noqa: DTZ001
    ("time without offset", Invalid, lambda m: m.turn("user", "hi", session="s", time="2026-01-01T00:00:00")),
    ("time that is none", Invalid, lambda m: m.turn("user", "hi", session="s", time="yesterday")),
    ("empty name", Invalid, lambda m: m.turn("user", "hi", session="s", name=" ")),
    ("name too long", TooLarge, lambda m: m.turn("user", "hi", session="s", name="n" * 2_000)),
    ("empty turn_id", Invalid, lambda m: m.turn("user", "hi", session="s", turn_id="")),
    ("name with a surrogate", Invalid, lambda m: m.turn("user", "hi", session="s", name="\ud800")),
    ("turn_id with a surrogate", Invalid, lambda m: m.turn("user", "hi", session="s", turn_id="\ud800")),
    ("empty memory", Invalid, lambda m: m.remember("")),
    ("no tool", Invalid, lambda m: m.tool_result("", {}, "x", session="s")),
    ("arguments no mapping", Invalid, lambda m: m.tool_result("t", [1], "x", session="s")),  # type: ignore[arg-type]
    ("arguments with NaN", Invalid, lambda m: m.tool_result("t", {"x": float("nan")}, "x", session="s")),
    ("arguments with an object", Invalid, lambda m: m.tool_result("t", {"x": object()}, "x", session="s")),
    ("arguments without bottom", Invalid, lambda m: m.tool_result("t", _endless(), "x", session="s")),
    ("huge arguments", TooLarge, lambda m: m.tool_result("t", {"x": "y" * 1_000_000}, "x", session="s")),
]


def _endless() -> dict[str, Any]:
    nested: dict[str, Any] = {}
    nested["x"] = nested
    return nested


async def test_wrong_input_is_a_typed_error_and_nothing_is_published(home: Home, alice: Memory) -> None:
    for what, kind, publish in BAD:
        assert isinstance(await raised(publish(alice)), kind), what
    good = await alice.turn("user", "good", session="s")

    assert good.seq == 1
    await alice.settled(10)
    assert texts(home, "alice") == ["good"]


async def test_strange_input_that_can_be_kept_is(home: Home, alice: Memory) -> None:
    future = times.text_of(times.aware(None) + timedelta(days=36_500))
    await alice.turn("user", "before\0after", session="nul")
    await alice.turn("user", b"valid utf-8 \xec\x98\xa8\xeb\x8f\x84", session="bytes")
    binary = await alice.turn("user", b"caf\xe9 \xff\xfe", session="binary")
    await alice.turn("user", "tomorrow", session="future", time=future)
    await alice.turn("user", "x" * 250_000 + '"' * 6_000, session="long")
    await alice.turn("user", "\x01" * 100_000 + "control", session="control")
    await alice.turn("user", "한국어 🎉 " * 5, session="../../etc/passwd")
    await alice.settled(20)

    kept = {line["event"]["session"]: line["event"]["data"]["text"] for line in sources(home, "alice")}
    assert kept["nul"] == "before\0after"
    assert kept["bytes"] == "valid utf-8 온도"
    assert kept["binary"]["sha256"] == hashlib.sha256(b"caf\xe9 \xff\xfe").hexdigest()
    assert blob_path(home, "alice", kept["binary"]["sha256"]).read_bytes() == b"caf\xe9 \xff\xfe"
    assert kept["../../etc/passwd"].startswith("한국어")
    assert kept["control"]["size_bytes"] == 100_007
    for query in ("before", "after", "온도", "tomorrow", "control", "한국어", "caf"):
        assert (await alice.recall(query)).status == "found", query
    assert [link.id for link in await alice.why(binary.id)] == [binary.id]


async def test_a_tool_result_of_20_mb_is_kept_whole(home: Home, alice: Memory) -> None:
    result = "".join(f"line {n:07}: nothing to see here\n" for n in range(600_000))
    stub = await alice.tool_result("read_log", {"path": "a.log"}, result, session="s", call_id="c1")
    again = await alice.tool_result("read_log", {"path": "a.log"}, result, session="s", call_id="c1")
    await alice.settled(60)

    (line,) = lines(home, "alice")
    blob = line["event"]["data"]["result"]
    assert blob["size_bytes"] == len(result) > 20_000_000
    assert blob_path(home, "alice", blob["sha256"]).read_bytes() == result.encode()
    assert (again.node, again.text, again.seq) == (stub.node, stub.text, stub.seq)
    assert stub.node in stub.text
    assert len(stub.text) < 20_000
    with pytest.raises(Conflict):
        await alice.tool_result("read_log", {"path": "a.log"}, "other", session="s", call_id="c1")


async def test_short_results_are_their_own_stub(alice: Memory) -> None:
    for result, text in (("ok", "ok"), ("", "")):
        stub = await alice.tool_result("t", None, result, session="s")
        assert stub.text == text
    binary = await alice.tool_result("t", None, b"\xff" * 1_000, session="s")
    assert binary.node in binary.text


@pytest.mark.parametrize(
    ("field", "value"), [("space", ""), ("space", "x" * 200), ("agent", "\ud800"), ("project", "p" * 999)]
)
async def test_opening_under_an_impossible_name_is_refused(home: Home, field: str, value: str) -> None:
    names: dict[str, Any] = {"space": "alice", field: value}
    with pytest.raises((Invalid, TooLarge)):
        async with Memory.open(home=home.path, **names):
            pytest.fail("it was opened")


async def test_used_after_close_is_closed(home: Home) -> None:
    async with daemon(home):
        async with Memory.open(space="alice", home=home.path) as memory:
            await memory.turn("user", "hi", session="s")
        with pytest.raises(Closed):
            await memory.turn("user", "hi", session="s")
        with pytest.raises(Closed):
            await memory.recall("hi")


async def test_a_full_log_is_an_error_and_nothing_is_half_written(home: Home) -> None:
    settings = config.Config(bus=config.BusConfig(max_bytes=400_000))
    async with daemon(home, settings), Memory.open(space="alice", home=home.path) as memory:
        accepted, full = await until_it_raises(memory, "x" * 20_000)
        assert isinstance(full, LogFull)
        assert "trim" in str(full)
        with pytest.raises(LogFull):
            await memory.turn("user", b"\xff" * 600_000, session="s")
        assert accepted
        await memory.settled(10)

        assert [line["event"]["id"] for line in sources(home, "alice")] == [one.id for one in accepted]
        assert outbox_files(home) == []
        assert (await memory.recall("3", limit=1)).status == "found"


class TestOutbox:
    """The log is away: the home has a server, but it was stopped."""

    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("lamina.client.link.CONNECT_S", 0.5)

    async def test_accepts_in_order_and_publishes_when_the_log_is_back(self, home: Home) -> None:
        async with local_bus(home.path) as (server, _):
            url = server.url
            config_file(home, server.credentials_file)
            async with Memory.open(space="alice", home=home.path, url=url) as memory:
                first = await memory.turn("user", "before", session="s", turn_id="0")
                await server.stop()
                await until(lambda: not memory._link.connected)
                waiting = [await memory.turn("user", f"away {n}", session="s") for n in range(50)]
                big = await memory.turn("user", "big " * 100_000, session="s")
                assert [one.seq for one in waiting] == [None] * 50
                hits = await memory.recall("before")
                assert hits.status == "unavailable"
                assert hits.degraded[0].remedy
                await server.start()
                await memory._link.emptied()
                after = await memory.turn("user", "after", session="s")

                assert first.seq == 1
                bus = memory._link.bus
                told = [json.loads(m.data) for s in range(1, 60) if (m := await bus.get(s)) and ".ev." in m.subject]
                assert [e["id"] for e in told] == [first.id, *(w.id for w in waiting), big.id, after.id]
            assert outbox_files(home) == []

    async def test_is_adopted_by_the_next_client(self, home: Home) -> None:
        async with local_bus(home.path) as (server, _):
            config_file(home, server.credentials_file)
            away = "nats://127.0.0.1:9"
            async with Memory.open(space="alice", home=home.path, url=away) as memory:
                assert (await memory.turn("user", "left behind", session="s")).seq is None
                await memory.turn("user", b"\xff" * 300_000, session="s")
            (left,) = [name for name in outbox_files(home) if name.endswith(".jsonl")]
            (home.outbox / "1-1.jsonl").write_bytes(b'no line\n{"subject":"x","id":"y","event":{}}\n{"torn')
            async with Memory.open(space="bob", home=home.path, url=server.url) as other:
                await until(lambda: left not in outbox_files(home) and "1-1.jsonl" not in outbox_files(home))
                bus = other._link.bus
                told = [m for s in range(1, 10) if (m := await bus.get(s)) and ".ev." in m.subject]
        assert [json.loads(m.data)["session"] for m in told] == ["s", "s"]
        assert [m.subject.split(".")[3] for m in told] == ["alice", "alice"]
        rejected = (home.outbox / "1-1.rejected").read_text().splitlines()
        assert [json.loads(line)["why"].split(":")[0] for line in rejected] == [
            "not readable",
            "'x' is no subject of the log (lamina.ev.>, lamina.blob.>; no wildcards)",
        ]

    async def test_full_is_an_error_and_what_raised_is_not_kept(self, home: Home) -> None:
        home.config.write_text("[outbox]\nmax_bytes = 20000\n")
        async with Memory.open(space="alice", home=home.path, url="nats://127.0.0.1:9") as memory:
            kept, full = await until_it_raises(memory, "x" * 1_000)
            assert isinstance(full, OutboxFull)
            assert "outbox.max_bytes" in str(full)
            with pytest.raises(OutboxFull):
                await memory.turn("user", b"\xff" * 30_000, session="s")

            assert 10 < len(kept) < 20
            assert [one.id for one in memory._link.outbox.waiting()] == [one.id for one in kept]

    async def test_other_text_under_one_id_is_set_aside_not_lost(self, home: Home) -> None:
        async with local_bus(home.path) as (server, _):
            config_file(home, server.credentials_file)
            async with Memory.open(space="alice", home=home.path, url=server.url) as memory:
                await server.stop()
                await until(lambda: not memory._link.connected)
                for text in ("tea", "tea", "coffee"):
                    await memory.turn("user", text, session="s", turn_id="t")
                await server.start()
                await memory._link.emptied()
                assert (await memory._link.bus.info()).messages == 1
                assert memory._link.outbox.rejected == 1
            (rejected,) = home.outbox.glob("*.rejected")
            assert json.loads(rejected.read_text())["event"]["data"]["text"] == "coffee"

    async def test_a_damaged_blob_keeps_nothing_else_back(self, home: Home) -> None:
        async with local_bus(home.path) as (server, _):
            config_file(home, server.credentials_file)
            async with Memory.open(space="alice", home=home.path, url="nats://127.0.0.1:9") as memory:
                await memory.turn("user", b"\xff" * 300_000, session="s")
                await memory.turn("user", "fine", session="s")
            for blob in home.outbox.glob("*.blobs/*"):
                blob.write_bytes(b"rotten")
            async with Memory.open(space="bob", home=home.path, url=server.url) as other:
                await until(lambda: not [name for name in outbox_files(home) if name.endswith(".jsonl")])
                stored = await other._link.bus.get(1)
                assert stored is not None
                assert json.loads(stored.data)["data"]["text"] == "fine"
            assert len(list(home.outbox.glob("*.rejected"))) == 1

    def test_a_living_owner_is_left_alone(self, home: Home) -> None:
        own = Outbox(home.outbox, max_bytes=10_000)
        own.put(Waiting("s", "i", event=Raw(b"{}")), [])
        assert list(orphans(home.outbox, 10_000)) == []
        own.close()
        (adopted,) = orphans(home.outbox, 10_000)
        assert [one.id for one in adopted.waiting()] == ["i"]
        adopted.close()


async def raised(work: Awaitable[Any]) -> LaminaError | None:
    try:
        await work
    except LaminaError as error:
        return error
    return None


async def until_it_raises(memory: Memory, text: str) -> tuple[list[Accepted], LaminaError]:
    """Publish until there is no room; what was accepted, and the error."""
    accepted: list[Accepted] = []
    try:
        for n in range(1_000):
            accepted.append(await memory.turn("user", f"{n} {text}", session="s"))
    except LaminaError as error:
        return accepted, error
    pytest.fail("there was always room")


def config_file(home: Home, credentials: Path) -> None:
    home.config.write_text(f"[bus]\ncredentials = {json.dumps(str(credentials))}\n")
