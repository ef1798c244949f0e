"""One reading of the log for several services: each gets all of it in order, whatever the others do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from lamina.bus import Message, Outgoing
from lamina.bus.local import local_bus
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.bus.memory.reader import MemoryReader
from lamina.errors import Closed, Conflict, Invalid, Unavailable
from lamina.home import Home
from lamina.runtime import feed as feeds
from lamina.runtime.feed import Feed, FeedReader
from lamina.runtime.reading import Read
from tests.support.toy import WAIT_S, say

ALL = ("lamina.ev.>",)


class Counting(MemoryBus):
    """Names the readers that were made."""

    def __init__(self, log: MemoryLog) -> None:
        super().__init__(log)
        self.made: list[str] = []

    def read(self, subjects_: Sequence[str], *, after: int, name: str) -> MemoryReader:
        self.made.append(name)
        return super().read(subjects_, after=after, name=name)


async def published(bus: MemoryBus, count: int) -> None:
    for n in range(count):
        await say(bus, f"turn {n}", id=f"t{bus.log.last_seq}")


async def drain(reader: FeedReader, until: int, most: int = 500) -> list[Message]:
    """Everything up to message `until`."""
    found: list[Message] = []
    async with asyncio.timeout(WAIT_S):
        while not found or found[-1].seq < until:
            found += await reader.fetch(most, 1.0)
    return found


def seqs(messages: Sequence[Message]) -> list[int]:
    return [message.seq for message in messages]


async def test_the_log_is_read_and_decoded_once() -> None:
    bus = Counting(MemoryLog())
    await published(bus, 20)
    async with Feed(bus, ALL) as feed:
        one, two = (feed.read(after=0, name=name) for name in ("one", "two"))
        first, second = await asyncio.gather(drain(one, 20), drain(two, 20))

    assert bus.made == ["feed"]
    assert seqs(first) == list(range(1, 21))
    assert all(mine is theirs for mine, theirs in zip(first, second, strict=True))
    assert all(isinstance(message, Read) and message.recorded.event for message in first)


async def test_readers_elsewhere_read_for_themselves_until_they_meet() -> None:
    bus = Counting(MemoryLog())
    await published(bus, 10)
    async with Feed(bus, ALL) as feed:
        middle = feed.read(after=5, name="middle")
        assert seqs(await drain(middle, 10)) == [6, 7, 8, 9, 10]
        behind, ahead = feed.read(after=2, name="behind"), feed.read(after=12, name="ahead")
        assert seqs(await behind.fetch(4, 1.0)) == [3, 4, 5, 6]
        assert bus.made == ["feed", "behind"]
        assert seqs(await drain(behind, 10)) == [7, 8, 9, 10]  # from what is held
        waiting = asyncio.create_task(drain(ahead, 14))
        await published(bus, 4)
        assert seqs(await drain(middle, 14)) == [11, 12, 13, 14]
        assert seqs(await waiting) == [13, 14]
        await published(bus, 1)
        assert [seqs(await drain(reader, 15)) for reader in (middle, behind, ahead)] == [
            [15],
            [11, 12, 13, 14, 15],
            [15],
        ]

    assert bus.made == ["feed", "behind", "ahead"]


@pytest.mark.parametrize("seed", range(8))
async def test_all_get_everything_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    for name, value in (("MOST", 40), ("LEAST", 4), ("READ", 16), ("GIVE_WAY_S", 0.01), ("QUIET_S", 0.001)):
        monkeypatch.setattr(feeds, name, value)
    bus = Counting(MemoryLog())
    total = 400

    async def write() -> None:
        while bus.log.last_seq < total:
            await published(bus, min(chance.randint(1, 60), total - bus.log.last_seq))
            await asyncio.sleep(0)

    async def follow(feed: Feed, name: str, start: int, pause_s: float) -> list[int]:
        found: list[int] = []
        reader = feed.read(after=start, name=name, urgent=name == "urgent")
        while not found or found[-1] < total:
            if chance.random() < 0.02:  # a service begins again where it stood
                await reader.close()
                reader = feed.read(after=reader.position, name=name, urgent=name == "urgent")
            if chance.random() < 0.1:
                reader.wake()
            found += seqs(await reader.fetch(chance.randint(1, 50), 0.05))
            await asyncio.sleep(pause_s if chance.random() < 0.5 else 0)
        return found

    async with asyncio.timeout(WAIT_S), Feed(bus, ALL) as feed, asyncio.TaskGroup() as group:
        group.create_task(write())
        cases = [("urgent", 0, 0.001), ("late", 0, 0.02), ("far", 120, 0.0), ("quick", 0, 0.0)]
        tasks = [group.create_task(follow(feed, *case)) for case in cases]

    for (_, start, _), task in zip(cases, tasks, strict=True):
        assert task.result() == list(range(start + 1, total + 1))


async def test_a_reader_that_stands_still_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST", 50)
    monkeypatch.setattr(feeds, "LEAST", 10)
    bus = Counting(MemoryLog())
    await published(bus, 5)
    async with Feed(bus, ALL) as feed:
        still, going = feed.read(after=0, name="still"), feed.read(after=0, name="going")
        assert seqs(await still.fetch(5, 1.0)) == [1, 2, 3, 4, 5]
        for n in range(5, 405, 50):
            await published(bus, 50)
            await drain(going, n + 50)
            assert feed.behind(0) <= 50
        assert seqs(await drain(still, 405)) == list(range(6, 406))

    assert bus.made == ["feed", "still"]


async def test_the_next_is_read_while_much_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "READ", 60)
    bus = MemoryBus(MemoryLog())
    await published(bus, 100)
    async with Feed(bus, ALL) as feed:
        reader = feed.read(after=0, name="one")
        assert len(await reader.fetch(60, 1.0)) == 60
        for _ in range(50):  # and nobody asks
            await asyncio.sleep(0)
        assert feed.behind(60) == 40
        assert seqs(await reader.fetch(60, 1.0)) == list(range(61, 101))


async def test_few_are_not_read_in_advance() -> None:
    bus = Counting(MemoryLog())
    await published(bus, 3)
    async with Feed(bus, ALL) as feed:
        reader = feed.read(after=0, name="one")
        assert len(await reader.fetch(60, 1.0)) == 3
        await published(bus, 3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert feed.behind(3) == 0


async def test_others_stand_back_while_the_urgent_one_has_much_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "GIVE_WAY_S", 1e6)
    monkeypatch.setattr(feeds, "QUIET_S", 0.001)
    bus = MemoryBus(MemoryLog())
    await published(bus, 100)
    async with Feed(bus, ALL) as feed:
        other, urgent = feed.read(after=0, name="other"), feed.read(after=0, name="urgent", urgent=True)
        waiting = asyncio.create_task(other.fetch(500, 60))
        first = await urgent.fetch(60, 1.0)
        await urgent.fetch(60, 1.0)
        assert not waiting.done()  # the second batch is being folded
        assert other.pending == 100
        idle = asyncio.create_task(urgent.fetch(60, 60))
        assert len(await waiting) == 100
        assert len(first) == 60
        urgent.wake()
        await idle


async def test_standing_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "GIVE_WAY_S", 0.02)
    bus = MemoryBus(MemoryLog())
    await published(bus, 100)
    async with Feed(bus, ALL) as feed:
        other, urgent = feed.read(after=0, name="other"), feed.read(after=0, name="urgent", urgent=True)
        await urgent.fetch(60, 1.0)  # and it never comes back
        assert len(await other.fetch(500, 60)) == 100


async def test_few_messages_are_given_to_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "GIVE_WAY_S", 1e6)
    bus = MemoryBus(MemoryLog())
    await published(bus, 3)
    async with Feed(bus, ALL) as feed:
        other, urgent = feed.read(after=0, name="other"), feed.read(after=0, name="urgent", urgent=True)
        await urgent.fetch(60, 1.0)
        assert len(await other.fetch(500, 60)) == 3


async def test_a_new_epoch_ends_every_reader_and_a_new_one_begins() -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await published(bus, 3)
    async with Feed(bus, ALL) as feed:
        one, two = feed.read(after=0, name="one"), feed.read(after=0, name="two")
        await drain(one, 3)
        waiting = asyncio.create_task(one.fetch(5, 60))
        await asyncio.sleep(0)
        log.refill()
        for reading in (waiting, two.fetch(5, 60)):
            with pytest.raises(Conflict):
                await reading
        await published(bus, 2)
        again = feed.read(after=0, name="one")
        assert seqs(await drain(again, 2)) == [1, 2]


async def test_a_bus_that_is_away_is_unavailable() -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    await published(bus, 1)
    async with Feed(bus, ALL) as feed:
        reader = feed.read(after=0, name="one")
        await drain(reader, 1)
        log.down = True
        with pytest.raises(Unavailable):
            await reader.fetch(5, 0.01)
        waiting = asyncio.create_task(reader.fetch(5, 60))
        await asyncio.sleep(0)
        log.down = False
        await published(bus, 1)
        assert seqs(await waiting) == [2]


async def test_wake_and_close() -> None:
    bus = MemoryBus(MemoryLog())
    await published(bus, 1)
    async with Feed(bus, ALL) as feed:
        reader, other = feed.read(after=0, name="one"), feed.read(after=0, name="two")
        await drain(reader, 1)
        with pytest.raises(Invalid):
            await reader.fetch(0, 1.0)
        reader.wake()
        assert await reader.fetch(5, 60) == []
        waiting = asyncio.create_task(reader.fetch(5, 60))
        await asyncio.sleep(0)
        await reader.close()
        with pytest.raises(Closed):
            await waiting
    with pytest.raises(Closed):
        await other.fetch(1, 60)


async def test_what_is_published_to_no_space_is_passed_on_as_it_is() -> None:
    bus = MemoryBus(MemoryLog())
    await bus.publish("lamina.ev.999.alice.turn-recorded", b"{}")
    await published(bus, 1)
    async with Feed(bus, ALL) as feed:
        foreign, ours = await drain(feed.read(after=0, name="one"), 2)
    assert (isinstance(foreign, Read), isinstance(ours, Read)) == (False, True)


async def test_over_the_real_log(home: Home) -> None:
    async with local_bus(home.path) as (_, bus), Feed(bus, ALL) as feed:
        reader = feed.read(after=0, name="one")
        waiting = asyncio.create_task(reader.fetch(500, WAIT_S))
        subject = "lamina.ev.7.alice.turn-recorded"
        await bus.publish_batch([Outgoing(subject, b"x" * 2_000) for _ in range(400)])
        found = await waiting
        found += await drain(reader, 400) if len(found) < 400 else []
        assert seqs(found) == list(range(1, 401))
