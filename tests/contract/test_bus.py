"""The bus port, sentence by sentence, on every adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from lamina.bus import Bus, Message, Outgoing, nats
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.bus.server import Server
from lamina.bus.stream import ensure_stream
from lamina.errors import Busy, Closed, Conflict, Forgotten, Invalid, Timeout, TooLarge, Unavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one server for all: a new log takes 5 ms

SUBJECT = "lamina.ev.7.alice.turn-recorded"
OTHER = "lamina.ev.8.bob.turn-recorded"
Connect = Callable[[], Awaitable[Bus]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    one = Server(tmp_path_factory.mktemp("home"))
    await one.start()
    yield one
    await one.stop()


@pytest_asyncio.fixture(params=["memory", "nats"], loop_scope="module")
async def connect(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[Connect]:
    """Opens connections to one fresh log; closes them all in the end."""
    log = MemoryLog()
    opened: list[Bus] = []

    async def open_one() -> Bus:
        if request.param == "memory":
            bus: Bus = MemoryBus(log)
        else:
            bus = await nats.connect(server.url, credentials=server.credentials)
        opened.append(bus)
        return bus

    maker = await nats.connect(server.url, credentials=server.credentials)
    if request.param == "nats":
        await ensure_stream(maker, max_bytes=256 * 1024 * 1024)
    yield open_one
    for bus in opened:
        await bus.close()
    if request.param == "nats":
        await maker.connection.ask("$JS.API.STREAM.DELETE.LAMINA", b"", timeout_s=5)
    await maker.close()


@pytest_asyncio.fixture(loop_scope="module")
async def bus(connect: Connect) -> Bus:
    return await connect()


async def fill(bus: Bus, count: int, subject: str = SUBJECT) -> None:
    for n in range(count):
        await bus.publish(subject, f"{n}".encode())


async def drain(bus: Bus, subjects: list[str], after: int = 0) -> list[Message]:
    """What a reader gives from `after` up to the end of the log."""
    ends = [message.seq for subject in subjects if (message := await bus.last(subject))]
    reader = bus.read(subjects, after=after, name="drain")
    found: list[Message] = []
    while ends and (not found or found[-1].seq < max(ends)):
        batch = await reader.fetch(100, 10)
        assert batch
        found += batch
    await reader.close()
    return found


class TestPublish:
    async def test_acks_with_rising_positions(self, bus: Bus) -> None:
        acks = [await bus.publish(SUBJECT, b"x") for _ in range(3)]

        assert [ack.seq for ack in acks] == [1, 2, 3]
        assert not any(ack.duplicate for ack in acks)

    async def test_keeps_bytes_subject_headers_and_arrival(self, bus: Bus) -> None:
        data = bytes(range(256))
        before = (await bus.publish(SUBJECT, b"first")).seq
        await bus.publish(SUBJECT, data, id="a-1", headers={"Lamina-Chunk": "1/2", "X": "온도 22"})

        message = await bus.get(before + 1)

        assert message is not None
        assert (message.seq, message.subject, message.data) == (2, SUBJECT, data)
        assert message.headers == {"Nats-Msg-Id": "a-1", "Lamina-Chunk": "1/2", "X": "온도 22"}
        first = await bus.get(before)
        assert first is not None
        assert first.headers is None
        assert 1_700_000_000_000_000 < first.at_us <= message.at_us

    async def test_a_known_id_is_stored_once(self, bus: Bus) -> None:
        first = await bus.publish(SUBJECT, b"one", id="same")
        again = await bus.publish(SUBJECT, b"two", id="same")

        assert (again.seq, again.duplicate) == (first.seq, True)
        assert (await bus.info()).messages == 1

    async def test_empty_payload(self, bus: Bus) -> None:
        await bus.publish(SUBJECT, b"")

        message = await bus.get(1)
        assert message is not None
        assert message.data == b""

    @pytest.mark.parametrize("headers", [None, {"Lamina-Chunk": "1/2"}])
    async def test_size_counts_headers_and_the_bus_lives_on(self, bus: Bus, headers: dict[str, str] | None) -> None:
        with pytest.raises(TooLarge):
            await bus.publish(SUBJECT, b"x" * (1024 * 1024 + (0 if headers else 1)), headers=headers)

        assert (await bus.publish(SUBJECT, b"x" * (1024 * 1024))).seq == 1

    @pytest.mark.parametrize(
        "subject",
        [
            "",
            "lamina",
            "lamina.ev",
            "lamina.ev.",
            "lamina.ev.*.x",
            "lamina.ev.>",
            "lamina.ev.a b",
            "other.ev.1",
            "lamina.ev.1.\r\nPUB",
            "lamina.ev..x",
            "lamina.ev.ü",
            "lamina.rpc.1.a.b",
            "lamina.ev." + "x" * 5000,
        ],
    )
    async def test_a_foreign_subject_is_invalid(self, bus: Bus, subject: str) -> None:
        with pytest.raises(Invalid):
            await bus.publish(subject, b"x")

    @pytest.mark.parametrize("value", ["a\r\nb", "a\nb", " a", "a ", "\x00", "\ud800"])
    async def test_a_header_that_would_not_come_back_is_invalid(self, bus: Bus, value: str) -> None:
        with pytest.raises(Invalid):
            await bus.publish(SUBJECT, b"x", headers={"A": value})
        with pytest.raises(Invalid):
            await bus.publish(SUBJECT, b"x", id=value)

    async def test_order_of_one_task_is_kept_with_many_in_flight(self, bus: Bus) -> None:
        acks = await asyncio.gather(*(bus.publish(SUBJECT, f"{n}".encode()) for n in range(200)))

        assert [ack.seq for ack in acks] == list(range(1, 201))
        assert [m.data for m in await drain(bus, [SUBJECT])] == [f"{n}".encode() for n in range(200)]


class TestBatch:
    @pytest.mark.parametrize("count", [1, 2, 3, 1000])
    async def test_appends_all_in_order(self, bus: Bus, count: int) -> None:
        await bus.publish(SUBJECT, b"before")

        ack = await bus.publish_batch([Outgoing(SUBJECT, f"{n}".encode(), f"id-{n}") for n in range(count)])

        assert ack.seq == count + 1
        assert [m.data for m in await drain(bus, [SUBJECT], 1)] == [f"{n}".encode() for n in range(count)]

    async def test_its_messages_show_no_trace_of_the_batch(self, bus: Bus) -> None:
        await bus.publish_batch([Outgoing(SUBJECT, b"1", "a"), Outgoing(OTHER, b"2", None, {"A": "b"})])

        assert [m.headers for m in await drain(bus, ["lamina.ev.>"])] == [{"Nats-Msg-Id": "a"}, {"A": "b"}]

    @pytest.mark.parametrize("place", [0, 1, 2])
    async def test_a_known_id_inside_stores_nothing(self, bus: Bus, place: int) -> None:
        await bus.publish(SUBJECT, b"x", id="known")
        batch = [Outgoing(SUBJECT, b"x", "known" if n == place else f"new-{n}") for n in range(3)]

        with pytest.raises(Conflict):
            await bus.publish_batch(batch)

        assert (await bus.info()).last_seq == 1
        assert not (await bus.publish(SUBJECT, b"x", id="new-1" if place != 1 else "new-2")).duplicate

    async def test_the_same_id_twice_inside_stores_nothing(self, bus: Bus) -> None:
        with pytest.raises(Conflict):
            await bus.publish_batch([Outgoing(SUBJECT, b"x", "twice"), Outgoing(SUBJECT, b"x", "twice")])

        assert (await bus.info()).last_seq == 0

    @pytest.mark.parametrize("count", [0, 1001])
    async def test_other_lengths_are_invalid(self, bus: Bus, count: int) -> None:
        with pytest.raises(Invalid):
            await bus.publish_batch([Outgoing(SUBJECT, b"x")] * count)

    async def test_one_too_large_message_stores_nothing(self, bus: Bus) -> None:
        with pytest.raises(TooLarge):
            await bus.publish_batch([Outgoing(SUBJECT, b"x"), Outgoing(SUBJECT, b"x" * (1024 * 1024 + 1))])

        assert (await bus.info()).last_seq == 0

    async def test_batches_of_several_tasks_do_not_mix(self, connect: Connect) -> None:
        buses = [await connect() for _ in range(4)]

        await asyncio.gather(
            *(one.publish_batch([Outgoing(SUBJECT, bytes([n]))] * 50) for n, one in enumerate(buses))
        )

        seen = b"".join(m.data for m in await drain(buses[0], [SUBJECT]))
        assert sorted(seen[at : at + 50] for at in range(0, 200, 50)) == [bytes([n]) * 50 for n in range(4)]


class TestRead:
    async def test_gives_log_order_from_behind_a_position(self, bus: Bus) -> None:
        await fill(bus, 5)

        assert [m.seq for m in await drain(bus, [SUBJECT], 2)] == [3, 4, 5]

    async def test_a_position_beyond_the_end_waits_for_what_follows(self, bus: Bus) -> None:
        await fill(bus, 2)
        reader = bus.read([SUBJECT], after=3, name="ahead")
        assert await reader.fetch(10, 0.05) == []
        await fill(bus, 2)

        assert [m.seq for m in await reader.fetch(10, 5)] == [4]

    async def test_gives_only_its_subjects(self, bus: Bus) -> None:
        await fill(bus, 2)
        await fill(bus, 2, OTHER)
        await fill(bus, 1)

        assert [m.seq for m in await drain(bus, ["lamina.ev.8.>", "lamina.blob.8.>"])] == [3, 4]
        assert [m.seq for m in await drain(bus, ["lamina.ev.*.alice.*"])] == [1, 2, 5]

    async def test_reads_256_lanes_at_once(self, bus: Bus) -> None:
        for lane in (0, 100, 255):
            await bus.publish(f"lamina.ev.{lane}.s.k", b"x")

        lanes = [f"lamina.{kind}.{lane}.>" for lane in range(256) for kind in ("ev", "blob")]
        reader = bus.read(lanes, after=0, name="lanes")
        seen: list[int] = []
        while len(seen) < 3:
            seen += [m.seq for m in await reader.fetch(10, 10)]
        assert seen == [1, 2, 3]

    @pytest.mark.parametrize(
        "subjects",
        [[], ["lamina.ev.>", "lamina.ev.7.>"], [SUBJECT, "*.ev.7.>"], ["lamina.>.x"], [""], ["a b"]],
    )
    async def test_overlapping_or_malformed_subjects_are_invalid(self, bus: Bus, subjects: list[str]) -> None:
        with pytest.raises(Invalid):
            bus.read(subjects, after=0, name="bad")

    async def test_fetch_returns_at_most_what_was_asked_and_loses_nothing(self, bus: Bus) -> None:
        await fill(bus, 25)
        reader = bus.read([SUBJECT], after=0, name="small")
        seen: list[int] = []
        while len(seen) < 25 and (batch := await reader.fetch(4, 10)):
            assert len(batch) <= 4
            seen += [m.seq for m in batch]

        assert seen == list(range(1, 26))

    async def test_fetch_returns_as_soon_as_there_is_one(self, bus: Bus) -> None:
        reader = bus.read([SUBJECT], after=0, name="waiting")
        waiting = asyncio.create_task(reader.fetch(100, 60))
        await asyncio.sleep(0)
        await bus.publish(SUBJECT, b"x")

        assert [m.seq for m in await waiting] == [1]

    async def test_fetch_is_empty_when_nothing_came(self, bus: Bus) -> None:
        reader = bus.read([SUBJECT], after=0, name="idle")

        assert await reader.fetch(10, 0.05) == []
        assert await reader.fetch(10, 0) == []

    async def test_fetch_of_none_is_invalid(self, bus: Bus) -> None:
        with pytest.raises(Invalid):
            await bus.read([SUBJECT], after=0, name="none").fetch(0, 1)

    async def test_a_cancelled_fetch_loses_nothing(self, bus: Bus) -> None:
        reader = bus.read([SUBJECT], after=0, name="cancelled")
        for n in range(20):
            fetching = asyncio.create_task(reader.fetch(1, 60))
            await asyncio.sleep(0)
            await bus.publish(SUBJECT, b"x")
            fetching.cancel()
            got = (await asyncio.gather(fetching, return_exceptions=True))[0]
            batch = got if isinstance(got, list) else await reader.fetch(1, 5)
            assert [m.seq for m in batch] == [n + 1]

    async def test_pending_counts_what_is_behind_the_last_one_returned(self, bus: Bus) -> None:
        await fill(bus, 5)
        await fill(bus, 3, OTHER)
        reader = bus.read([SUBJECT], after=0, name="lag")

        left = 5
        while left:
            left -= len(await reader.fetch(2, 10))
            assert reader.pending == left

    async def test_wake_ends_a_wait(self, bus: Bus) -> None:
        reader = bus.read([SUBJECT], after=0, name="woken")
        waiting = asyncio.create_task(reader.fetch(10, 60))
        await asyncio.sleep(0)
        reader.wake()

        assert await waiting == []

    async def test_wake_before_a_wait_ends_it_too(self, bus: Bus) -> None:
        reader = bus.read([SUBJECT], after=0, name="woken")
        reader.wake()

        assert await reader.fetch(10, 60) == []

    async def test_close_ends_a_wait_and_every_later_fetch(self, bus: Bus) -> None:
        reader = bus.read([SUBJECT], after=0, name="closed")
        waiting = asyncio.create_task(reader.fetch(10, 60))
        await asyncio.sleep(0)
        await reader.close()
        await reader.close()

        with pytest.raises(Closed):
            await waiting
        with pytest.raises(Closed):
            await reader.fetch(1, 1)

    async def test_erased_messages_leave_no_hole_in_what_is_read(self, bus: Bus) -> None:
        await fill(bus, 10)
        for seq in (1, 4, 5, 10):
            await bus.erase(seq)

        assert [m.seq for m in await drain(bus, [SUBJECT])] == [2, 3, 6, 7, 8, 9]

    async def test_two_readers_of_one_name_do_not_disturb_each_other(self, connect: Connect) -> None:
        one, two = await connect(), await connect()
        await fill(one, 10)
        readers = [bus.read([SUBJECT], after=0, name="journal") for bus in (one, two)]
        seen: list[list[int]] = [[], []]
        while min(len(one) for one in seen) < 10:
            for reader, into in zip(readers, seen, strict=True):
                into += [m.seq for m in await reader.fetch(3, 10)] if len(into) < 10 else []

        assert seen == [list(range(1, 11))] * 2


class TestState:
    async def test_get_gives_none_where_nothing_is(self, bus: Bus) -> None:
        await fill(bus, 1)

        assert await bus.get(2) is None
        assert await bus.get(10**9) is None

    async def test_last_on_a_subject_or_pattern(self, bus: Bus) -> None:
        assert await bus.last(SUBJECT) is None
        await fill(bus, 3)
        await fill(bus, 1, OTHER)

        for subject, seq in [(SUBJECT, 3), (OTHER, 4), ("lamina.ev.>", 4), ("lamina.ev.7.alice.*", 3)]:
            message = await bus.last(subject)
            assert message is not None
            assert message.seq == seq
        assert await bus.last("lamina.ev.9.>") is None

    async def test_next_on_a_subject_or_pattern(self, bus: Bus) -> None:
        assert await bus.next(SUBJECT, 0) is None
        await fill(bus, 3)
        await fill(bus, 1, OTHER)
        await bus.erase(2)

        for subject, after, seq in [(SUBJECT, 0, 1), (SUBJECT, 1, 3), (OTHER, 0, 4), ("lamina.ev.>", 3, 4)]:
            message = await bus.next(subject, after)
            assert message is not None
            assert message.seq == seq
        assert await bus.next(SUBJECT, 3) is None
        assert await bus.next(SUBJECT, 10**9) is None

    async def test_info_tells_the_ends(self, bus: Bus) -> None:
        empty = await bus.info()
        assert (empty.first_seq, empty.last_seq, empty.messages) == (1, 0, 0)

        await fill(bus, 3)
        await bus.erase(1)
        info = await bus.info()

        assert (info.first_seq, info.last_seq, info.messages) == (2, 3, 2)
        assert info.epoch == bus.epoch != ""
        assert 0 < info.size_bytes < info.max_bytes

    async def test_erase_says_whether_something_was_there(self, bus: Bus) -> None:
        await fill(bus, 2)

        assert await bus.erase(1) is True
        assert await bus.erase(1) is False
        assert await bus.erase(99) is False
        assert await bus.get(1) is None

    async def test_a_purge_takes_what_lies_below_on_its_subjects_alone(self, bus: Bus) -> None:
        await fill(bus, 3)
        await fill(bus, 2, OTHER)
        await fill(bus, 1)

        assert await bus.purge(SUBJECT, below=0) == 0
        assert await bus.purge(SUBJECT, below=3) == 2
        assert await bus.purge(SUBJECT, below=3) == 0
        assert [m.seq for m in await drain(bus, ["lamina.ev.>"])] == [3, 4, 5, 6]
        assert await bus.purge("lamina.ev.>", below=10**9) == 4
        assert (await bus.publish(SUBJECT, b"x")).seq == 7

    async def test_positions_are_not_given_again(self, bus: Bus) -> None:
        await fill(bus, 2)
        await bus.erase(2)

        assert (await bus.publish(SUBJECT, b"x")).seq == 3


class TestRequest:
    async def test_a_served_subject_answers(self, connect: Connect) -> None:
        server, client = await connect(), await connect()

        async def handler(subject: str, data: bytes) -> bytes:
            return subject.encode() + b"|" + data

        await server.serve("lamina.rpc.*.>", handler)

        assert await client.request("lamina.rpc.1.a.recall", b"q", timeout_s=5) == b"lamina.rpc.1.a.recall|q"

    async def test_nobody_serving_is_unavailable(self, bus: Bus) -> None:
        with pytest.raises(Unavailable):
            await bus.request("lamina.rpc.1.a.recall", b"q", timeout_s=60)

    async def test_each_request_is_a_task_of_its_own(self, bus: Bus) -> None:
        both = asyncio.Barrier(2)

        async def handler(subject: str, data: bytes) -> bytes:
            await both.wait()
            return data

        await bus.serve("lamina.rpc.>", handler)

        answers = await asyncio.gather(*(bus.request("lamina.rpc.1", data, timeout_s=5) for data in (b"one", b"two")))
        assert answers == [b"one", b"two"]

    @pytest.mark.parametrize("kind", [Forgotten, Busy, Invalid])
    async def test_the_error_of_a_handler_is_raised_again(self, bus: Bus, kind: type[Exception]) -> None:
        async def handler(subject: str, data: bytes) -> bytes:
            raise kind("지워졌습니다\nsecond line")

        await bus.serve("lamina.rpc.>", handler)

        with pytest.raises(kind, match="지워졌습니다\nsecond line"):
            await bus.request("lamina.rpc.1", b"", timeout_s=5)

    async def test_any_other_failure_is_unavailable(self, bus: Bus) -> None:
        async def handler(subject: str, data: bytes) -> bytes:
            raise KeyError("secret")

        await bus.serve("lamina.rpc.>", handler)

        with pytest.raises(Unavailable, match="KeyError") as caught:
            await bus.request("lamina.rpc.1", b"", timeout_s=5)
        assert "secret" not in str(caught.value)

    async def test_no_answer_in_time(self, bus: Bus) -> None:
        async def handler(subject: str, data: bytes) -> bytes:
            await asyncio.Event().wait()
            return b""

        await bus.serve("lamina.rpc.>", handler)

        with pytest.raises(Timeout):
            await bus.request("lamina.rpc.1", b"", timeout_s=0.05)

    async def test_one_of_a_queue_answers(self, connect: Connect) -> None:
        heard: list[int] = []
        for n in range(3):

            async def handler(subject: str, data: bytes, n: int = n) -> bytes:
                heard.append(n)
                return b""

            await (await connect()).serve("lamina.rpc.>", handler, queue="query")
        client = await connect()
        for _ in range(10):
            await client.request("lamina.rpc.1", b"", timeout_s=5)

        assert len(heard) == 10

    async def test_close_ends_serving(self, bus: Bus) -> None:
        async def handler(subject: str, data: bytes) -> bytes:
            return b""

        served = await bus.serve("lamina.rpc.>", handler)
        await bus.request("lamina.rpc.1", b"", timeout_s=5)
        await served.close()
        await served.close()

        with pytest.raises(Unavailable):
            await bus.request("lamina.rpc.1", b"", timeout_s=60)

    async def test_too_large(self, bus: Bus) -> None:
        async def handler(subject: str, data: bytes) -> bytes:
            return b"x" * (1024 * 1024 + 1)

        await bus.serve("lamina.rpc.>", handler)

        with pytest.raises(TooLarge):
            await bus.request("lamina.rpc.1", b"x" * (1024 * 1024 + 1), timeout_s=5)
        with pytest.raises(TooLarge):
            await bus.request("lamina.rpc.1", b"", timeout_s=5)


class TestNotify:
    async def test_listeners_hear_and_nothing_is_stored(self, connect: Connect) -> None:
        one, two = await connect(), await connect()
        heard: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        await two.listen("lamina.applied.>", lambda subject, data: heard.put_nowait((subject, data)))
        await one.notify("lamina.applied.1.a.journal", b"7")

        assert await asyncio.wait_for(heard.get(), 5) == ("lamina.applied.1.a.journal", b"7")
        assert (await one.info()).last_seq == 0

    async def test_nobody_listening_is_no_error(self, bus: Bus) -> None:
        await bus.notify("lamina.applied.1.a.journal", b"7")

    async def test_a_failing_listener_hears_the_next_one_too(self, bus: Bus) -> None:
        heard: asyncio.Queue[bytes] = asyncio.Queue()

        def listener(subject: str, data: bytes) -> None:
            heard.put_nowait(data)
            raise KeyError(subject)

        await bus.listen("lamina.applied.>", listener)
        for data in (b"1", b"2"):
            await bus.notify("lamina.applied.x", data)

        assert [await asyncio.wait_for(heard.get(), 5) for _ in range(2)] == [b"1", b"2"]

    async def test_close_ends_listening(self, connect: Connect) -> None:
        bus = await connect()
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        closed = await bus.listen("lamina.applied.>", lambda _, data: heard.put_nowait(b"closed"))
        await bus.listen("lamina.applied.>", lambda _, data: heard.put_nowait(data))
        await closed.close()
        await bus.notify("lamina.applied.x", b"open")

        assert await asyncio.wait_for(heard.get(), 5) == b"open"


class TestClose:
    async def test_is_idempotent_and_ends_every_call(self, connect: Connect) -> None:
        bus = await connect()
        reader = bus.read([SUBJECT], after=0, name="r")
        waiting = asyncio.create_task(reader.fetch(1, 60))
        await asyncio.sleep(0)
        assert bus.connected
        await bus.close()
        await bus.close()

        assert not bus.connected
        with pytest.raises(Closed):
            await waiting
        for call in (
            bus.publish(SUBJECT, b"x"),
            bus.publish_batch([Outgoing(SUBJECT, b"x")]),
            bus.get(1),
            bus.last(SUBJECT),
            bus.info(),
            bus.erase(1),
            bus.request("lamina.rpc.1", b"", timeout_s=5),
            bus.notify("lamina.x", b""),
            bus.listen("lamina.x", lambda _, __: None),
        ):
            with pytest.raises(Closed):
                await call
        with pytest.raises(Closed):
            bus.read([SUBJECT], after=0, name="r")

    async def test_of_one_connection_leaves_the_others(self, connect: Connect) -> None:
        one, two = await connect(), await connect()
        await one.close()

        assert (await two.publish(SUBJECT, b"x")).seq == 1
