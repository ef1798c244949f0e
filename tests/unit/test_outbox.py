"""The outbox: in order, durable, bounded, adopted; one bad line or event keeps nothing else back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw

from lamina.client.outbox import Outbox, Waiting, orphans
from lamina.errors import Conflict, Invalid, LogFull, OutboxFull, Unavailable

SUBJECT = "lamina.ev.1.alice.turn-recorded"


def waiting(n: int, *blobs: str) -> Waiting:
    return Waiting(SUBJECT, f"e{n}", Raw(b'{"n":%d}' % n), blobs)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path, max_bytes=5_000)


class Log:
    """A log that refuses what it is told to."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = errors
        self.stored: list[str] = []

    async def publish(self, one: Waiting, outbox: Outbox) -> None:
        error = self.errors.pop(one.id, None)
        if error is not None:
            raise error
        self.stored.append(one.id)


async def test_is_emptied_in_order_and_leaves_nothing(tmp_path: Path, outbox: Outbox) -> None:
    log = Log()
    for n in range(5):
        outbox.put(waiting(n), [])
    assert not outbox.empty
    assert await outbox.drain(log.publish) == 5
    outbox.put(waiting(5), [])
    assert await outbox.drain(log.publish) == 1
    assert outbox.empty
    outbox.close()

    assert log.stored == [f"e{n}" for n in range(6)]
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [Unavailable("away"), LogFull("full")])
async def test_goes_on_where_it_was_interrupted(outbox: Outbox, error: Exception) -> None:
    log = Log(e2=error)
    for n in range(4):
        outbox.put(waiting(n), [])
    with pytest.raises(type(error)):
        await outbox.drain(log.publish)
    outbox.put(waiting(4), [])
    await outbox.drain(log.publish)

    assert log.stored == ["e0", "e1", "e2", "e3", "e4"]
    outbox.close()


@pytest.mark.parametrize("error", [Invalid("never"), Conflict("other text")])
async def test_what_is_refused_for_good_is_set_aside_with_the_reason(
    tmp_path: Path, outbox: Outbox, error: Exception
) -> None:
    log = Log(e1=error)
    for n in range(3):
        outbox.put(waiting(n), [])
    await outbox.drain(log.publish)
    outbox.close()

    assert log.stored == ["e0", "e2"]
    (kept,) = names(tmp_path)
    assert json.loads((tmp_path / kept).read_text()) == {"why": str(error), "event": {"n": 1}}


async def test_an_event_put_while_it_is_emptied_comes_after(outbox: Outbox) -> None:
    stored: list[str] = []

    async def publish(one: Waiting, _: Outbox) -> None:
        if len(stored) < 3:
            outbox.put(waiting(10 + len(stored)), [])
        stored.append(one.id)

    outbox.put(waiting(0), [])
    await outbox.drain(publish)

    assert stored == ["e0", "e10", "e11", "e12"]
    assert outbox.empty
    outbox.close()


def test_is_bounded_with_its_blobs(tmp_path: Path, outbox: Outbox) -> None:
    outbox.put(waiting(0, "a" * 64), [("a" * 64, b"x" * 4_000)])
    with pytest.raises(OutboxFull, match="outbox"):
        outbox.put(waiting(1, "b" * 64), [("b" * 64, b"x" * 1_000)])
    outbox.put(waiting(2), [])

    assert [one.id for one in outbox.waiting()] == ["e0", "e2"]
    assert [path.name for path in tmp_path.glob("*.blobs/*")] == ["a" * 64]
    outbox.close()


async def test_is_adopted_after_its_owner_and_not_before(tmp_path: Path, outbox: Outbox) -> None:
    outbox.put(waiting(0), [])
    assert list(orphans(tmp_path, 5_000)) == []
    outbox.close()
    log = Log()
    for adopted in orphans(tmp_path, 5_000):
        await adopted.drain(log.publish)
        adopted.close()

    assert log.stored == ["e0"]
    assert names(tmp_path) == []


@pytest.mark.parametrize("torn", [b"", b'{"subject":"lam', b"\xff", b"[]"])
async def test_a_torn_end_is_cut_and_a_bad_line_set_aside(tmp_path: Path, torn: bytes) -> None:
    good = json.dumps({"subject": SUBJECT, "id": "e1", "event": {}, "blobs": []}).encode()
    (tmp_path / "1-1.jsonl").write_bytes(b"\xff garbage\n" + good + b"\n[]\n" + good + b"\n" + torn)
    log = Log()
    for adopted in orphans(tmp_path, 5_000):
        await adopted.drain(log.publish)
        adopted.close()

    assert log.stored == ["e1", "e1"]
    rejected = [json.loads(line) for line in (tmp_path / "1-1.rejected").read_text().splitlines()]
    assert [line["why"].split(":")[0] for line in rejected] == ["not readable", "not readable"]
    assert names(tmp_path) == ["1-1.rejected"]


@pytest.mark.parametrize("change", ["gone", "rotten"])
def test_a_blob_that_is_not_what_it_was_is_invalid(tmp_path: Path, outbox: Outbox, change: str) -> None:
    outbox.put(waiting(0, "a" * 64), [("a" * 64, b"data")])
    if change == "gone":
        outbox.blob("a" * 64).unlink()

    with pytest.raises(Invalid, match="damaged or gone"):
        outbox.read_blob("a" * 64)
    outbox.close()
