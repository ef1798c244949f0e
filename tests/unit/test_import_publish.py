"""Publishing a log: whole batches, once, never far ahead of the journal, begun again wherever it was stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from lamina import events, ids
from lamina.bus import Ack, Outgoing, blobs
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Invalid, LogFull, Timeout, Unavailable
from lamina.events import Blob, Event, ToolReturned, TurnRecorded
from lamina.importer import BadRecord, open_log
from lamina.importer import publish as publishing
from lamina.importer.progress import Progress
from lamina.importer.publish import Publisher
from lamina.requests import Known, KnownIds, Position, Settled

FIXTURES = Path(__file__).parents[1] / "fixtures" / "import"
SPACE = "alice"
TOKEN = ids.token(SPACE)


class Node(MemoryBus):
    """A log with a journal that folds when it is asked to, and everything that may go wrong on demand."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.folded = 0
        self.may_fold = asyncio.Event()
        self.may_fold.set()
        self.asked = 0
        self.third_asked = asyncio.Event()
        self.forgotten: set[str] = set()
        self.batches: list[int] = []
        self.furthest = 0
        self.fail: list[Exception] = []
        self.after_batch: Callable[[], Awaitable[None]] | None = None

    def events(self) -> list[Event]:
        found = self.log.messages.values()
        return [events.decode(m.data) for m in found if m.subject.startswith("lamina.ev.")]

    def ahead(self) -> int:
        return sum(seq > self.folded and m.subject.startswith("lamina.ev.") for seq, m in self.log.messages.items())

    async def publish_batch(self, messages: Sequence[Outgoing], *, timeout_s: float = 30.0) -> Ack:
        if self.fail:
            raise self.fail.pop(0)
        ack = await super().publish_batch(messages, timeout_s=timeout_s)
        self.batches.append(len(messages))
        self.furthest = max(self.furthest, self.ahead())
        if self.after_batch is not None:
            await self.after_batch()
        return ack

    async def answer(self, subject: str, payload: bytes) -> bytes:
        if subject.endswith(".known"):
            self.asked += 1
            if self.asked == 3:
                self.third_asked.set()
            asked = msgspec.json.decode(payload, type=Known).ids
            found: dict[str, tuple[int, str]] = {}
            for seq, message in self.log.messages.items():
                if seq <= self.folded and message.subject.startswith("lamina.ev."):
                    event = events.decode(message.data)
                    if event.id in asked:
                        found.setdefault(event.id, (seq, event.sha256))
            found |= {id: (0, "") for id in self.forgotten.intersection(asked)}
            return msgspec.json.encode(KnownIds(ids=found))
        assert msgspec.json.decode(payload, type=Settled).layers == ("journal",)
        head = self.log.last_seq
        await self.may_fold.wait()
        self.folded = max(self.folded, head)
        return msgspec.json.encode(Position(seqs={"journal": head}))


@asynccontextmanager
async def node() -> AsyncIterator[Node]:
    bus = Node(MemoryLog())
    await bus.serve("lamina.rpc.>", bus.answer)
    yield bus
    await bus.close()


async def run(bus: Node, path: Path, *, skip_bad: bool = False, bad: list[BadRecord] | None = None) -> Progress:
    told = bad if bad is not None else []
    publisher = Publisher(lambda: bus, SPACE, skip_bad=skip_bad, on_bad=told.append)
    with open_log(path) as log:
        return await publisher.publish(log)


def lines(path: Path, n: int, *, first: int = 0) -> Path:
    texts = (json.dumps({"role": "user", "text": f"turn {i}", "session": "s"}) for i in range(first, first + n))
    path.write_text("\n".join(texts) + "\n")
    return path


async def test_every_record_is_one_event_with_the_log_s_own_id_and_time() -> None:
    async with node() as bus:
        done = await run(bus, FIXTURES / "claude_code.jsonl")
        found = {event.id: event for event in bus.events()}

    turn = found[ids.source_id(SPACE, "5e55-a", "u-0002", "turn.recorded")]
    call = found[ids.source_id(SPACE, "5e55-a/agent-6e06", "toolu_2", "tool.returned")]
    said = events.decode_data(turn)
    returned = events.decode_data(call)
    assert (done.turns, done.calls, done.sessions, done.known, len(found)) == (9, 2, 2, 0, 11)
    assert (turn.time, turn.project, turn.agent) == ("2026-03-01T09:00:01.000000+00:00", "orders", "claude-code")
    assert isinstance(said, TurnRecorded)
    assert (said.turn_id, said.text) == ("u-0002", "Which database does the order service use?")
    assert isinstance(returned, ToolReturned)
    assert (returned.tool, returned.is_error, call.agent) == ("Bash", True, "claude-code/6e06")


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda path: path.name)
async def test_a_second_import_changes_nothing(path: Path) -> None:
    async with node() as bus:
        first = await run(bus, path, skip_bad=True)
        stored = bus.log.last_seq
        second = await run(bus, path, skip_bad=True)

        assert bus.log.last_seq == stored
    assert (second.turns, second.calls) == (0, 0)
    assert second.known >= first.turns + first.calls
    assert (second.bad, second.skipped, second.sessions) == (first.bad, first.skipped, first.sessions)


async def test_parts_are_in_the_log_before_the_event_that_names_them(tmp_path: Path) -> None:
    image = "data:image/png;base64," + "AAAA" * 100_000
    urls = (image, "data:a/b;base64,AAAA")
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}} for url in urls]}
    (tmp_path / "m.json").write_text(json.dumps([message, {"role": "user", "content": "x" * 300_000}]))

    async with node() as bus:
        await run(bus, tmp_path / "m.json")
        seqs = {event.id: seq for seq, event in zip(_event_seqs(bus), bus.events(), strict=True)}
        named = [(event, blob) for event in bus.events() for blob in _blobs(event)]
        sizes = [len(await blobs.get(bus, TOKEN, blob.sha256, blob.size_bytes)) for _, blob in named]
        places = [(await bus.last(ids.blob_subject(TOKEN, blob.sha256)), seqs[event.id]) for event, blob in named]

    assert sorted(sizes) == [3, 300_000, 300_000]
    assert all(message is not None and message.seq < seq for message, seq in places)


def _event_seqs(bus: Node) -> list[int]:
    return [seq for seq, message in bus.log.messages.items() if message.subject.startswith("lamina.ev.")]


def _blobs(event: Event) -> tuple[Blob, ...]:
    data = events.decode_data(event)
    assert isinstance(data, TurnRecorded)
    return data.parts + ((data.text,) if isinstance(data.text, Blob) else ())


async def test_it_is_at_most_a_thousand_events_ahead_of_the_journal(tmp_path: Path) -> None:
    async with node() as bus:
        bus.may_fold.clear()
        importing = asyncio.create_task(run(bus, lines(tmp_path / "x.jsonl", 2600)))
        await bus.third_asked.wait()
        for _ in range(100):  # the third batch is in hand: as far as it gets while the journal stands still
            await asyncio.sleep(0)
        ahead, batches = bus.ahead(), len(bus.batches)
        bus.may_fold.set()
        done = await importing

    assert (ahead, batches) == (1000, 2)
    assert (done.turns, bus.furthest) == (2600, 1000)
    assert bus.batches == [500, 500, 500, 500, 500, 100]


@pytest.mark.parametrize("after", [1, 2, 4])
async def test_an_import_cut_off_anywhere_ends_in_the_same_state_when_begun_again(tmp_path: Path, after: int) -> None:
    path = lines(tmp_path / "x.jsonl", 2600)
    async with node() as whole:
        await run(whole, path)

    async with node() as bus:

        async def cut() -> None:
            if len(bus.batches) == after:
                importing.cancel()

        bus.after_batch = cut
        importing = asyncio.create_task(run(bus, path))
        with pytest.raises(asyncio.CancelledError):
            await importing
        bus.after_batch = None
        bus.folded = bus.log.last_seq
        again = await run(bus, path)

        assert [event.id for event in bus.events()] == [event.id for event in whole.events()]
    assert (again.turns, again.known) == (2600 - 500 * after, 500 * after)


async def test_a_log_that_has_grown_is_brought_up_to_date(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", 10)
    async with node() as bus:
        await run(bus, path)
        lines(path, 15)
        done = await run(bus, path)

    assert (done.turns, done.known) == (5, 10)


async def test_a_batch_whose_ack_is_lost_is_not_stored_twice(tmp_path: Path) -> None:
    async with node() as bus:
        bus.log.lose_acks = 1
        done = await run(bus, lines(tmp_path / "x.jsonl", 700))

        assert len(bus.events()) == len({event.id for event in bus.events()}) == 700
    assert done.turns == 700


async def test_it_waits_for_a_log_that_is_away_for_a_while(tmp_path: Path) -> None:
    async with node() as bus:
        bus.fail = [Unavailable("away"), Unavailable("away")]
        done = await run(bus, lines(tmp_path / "x.jsonl", 3))

    assert done.turns == 3


async def test_it_gives_up_on_a_log_that_stays_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "PATIENCE_S", 0.0)
    async with node() as bus:
        bus.log.down = True
        with pytest.raises(Unavailable):
            await run(bus, lines(tmp_path / "x.jsonl", 3))
        bus.log.down = False


async def test_a_full_log_is_told_at_once(tmp_path: Path) -> None:
    async with node() as bus:
        bus.fail = [LogFull("no room")]
        with pytest.raises(LogFull):
            await run(bus, lines(tmp_path / "x.jsonl", 3))


async def test_the_first_bad_record_stops_and_what_stands_before_it_is_kept() -> None:
    bad: list[BadRecord] = []
    async with node() as bus:
        with pytest.raises(Invalid, match=r"claude_code_bad.jsonl:2: .*--skip-bad"):
            await run(bus, FIXTURES / "claude_code_bad.jsonl", bad=bad)

        assert len(bus.events()) == 1
    assert [record.line for record in bad] == [2]


async def test_bad_records_are_left_out_on_request() -> None:
    bad: list[BadRecord] = []
    async with node() as bus:
        done = await run(bus, FIXTURES / "claude_code_bad.jsonl", skip_bad=True, bad=bad)

    assert (done.turns, done.calls, done.bad) == (2, 1, 5)
    assert [record.line for record in bad] == [2, 3, 4, 5, 7]


async def test_the_same_id_twice_in_a_log_is_one_event_and_other_content_is_bad(tmp_path: Path) -> None:
    turn = {"role": "user", "text": "one", "session": "s", "turn_id": "t"}
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in (turn, turn, {**turn, "text": "two"})))
    bad: list[BadRecord] = []

    async with node() as bus:
        done = await run(bus, path, skip_bad=True, bad=bad)

        assert len(bus.events()) == 1
    assert (done.turns, done.known, done.bad) == (1, 1, 1)
    assert bad[0].line == 3
    assert "turn t of session s is in memory with other content" in bad[0].why


async def test_what_was_forgotten_stays_forgotten(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", 3)
    async with node() as bus:
        bus.forgotten = {ids.source_id(SPACE, "s", "x:2", "turn.recorded")}
        done = await run(bus, path)

        assert len(bus.events()) == 2
    assert (done.turns, done.skipped, done.bad) == (2, {"forgotten on request": 1}, 0)


async def test_other_content_than_in_memory_stops_the_import(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", 2)
    async with node() as bus:
        await run(bus, path)
        lines(path, 2, first=5)
        with pytest.raises(Invalid, match="other content"):
            await run(bus, path)


async def test_a_record_that_cannot_be_an_event_is_bad_in_its_place(tmp_path: Path) -> None:
    deep: object = "x"
    for _ in range(80):
        deep = [deep]
    path = tmp_path / "x.jsonl"
    path.write_text(
        json.dumps({"tool": "t", "arguments": {"a": deep}, "result": "r"})
        + "\n"
        + json.dumps({"role": "user", "text": "fine", "name": " "})
        + "\n"
        + json.dumps({"role": "user", "text": "fine", "turn_id": "x" * 2000})
    )
    bad: list[BadRecord] = []

    async with node() as bus:
        done = await run(bus, path, skip_bad=True, bad=bad)

    assert (done.turns, done.bad) == (1, 2)
    assert [record.line for record in bad] == [1, 3]


async def test_what_has_no_time_keeps_its_order() -> None:
    async with node() as bus:
        await run(bus, FIXTURES / "swe_agent.traj")
        times = [event.time for event in bus.events()]

    assert times == sorted(times)
    assert len(set(times)) == len(times)


async def test_progress_is_told_after_every_batch(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    async with node() as bus:
        publisher = Publisher(
            lambda: bus, SPACE, on_progress=lambda progress: told.append((progress.turns, progress.position_bytes))
        )
        with open_log(lines(tmp_path / "x.jsonl", 1200)) as log:
            done = await publisher.publish(log)

    assert [turns for turns, _ in told] == [500, 1000, 1200]
    assert told[-1][1] == done.size_bytes
    assert done.eta_s == pytest.approx(0.0)
    assert done.rate > 0


async def test_a_journal_that_stands_still_ends_the_import(tmp_path: Path) -> None:
    async with node() as bus:

        async def stuck(subject: str, payload: bytes) -> bytes:
            if subject.endswith(".settled"):
                raise Timeout("journal at 0 of 3")
            return await bus.answer(subject, payload)

        other = MemoryBus(bus.log)
        await other.serve("lamina.rpc.>", stuck)
        for served in list(bus.log.served)[:-1]:
            await served.close()
        with pytest.raises(Timeout, match="journal at 0"):
            await run(bus, lines(tmp_path / "x.jsonl", 3))
        await other.close()
