"""Blobs in the log: whole or not at all, found again by their name, erased for good."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina import ids
from lamina.bus import Bus, Outgoing, blobs
from lamina.bus.local import local_bus
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Denied, Forgotten, Invalid, LogFull, TooLarge, Unavailable
from lamina.events import CHUNK_BYTES, MAX_BLOB_BYTES

MIB = 1024 * 1024


@pytest.fixture(params=["memory", "nats"])
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bus]:
    if request.param == "memory":
        yield MemoryBus(MemoryLog())
        return
    async with local_bus(tmp_path / "home", max_bytes=512 * MIB) as (_, found):
        yield found


def some(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * MIB + 3])
async def test_a_blob_comes_back(bus: Bus, size: int) -> None:
    data = some(size)
    blob = await blobs.put(bus, "alice", data, media_type="image/png", name="a.png")

    assert (blob.size_bytes, blob.sha256) == (size, hashlib.sha256(data).hexdigest())
    assert (blob.media_type, blob.name) == ("image/png", "a.png")
    assert await blobs.get(bus, "alice", blob.sha256, size) == data
    assert (await bus.info()).messages == max(1, -(-size // CHUNK_BYTES))


async def test_the_largest_blob_from_a_file(tmp_path: Path) -> None:
    data = some(MAX_BLOB_BYTES)
    (tmp_path / "largest").write_bytes(data)
    async with local_bus(tmp_path / "home", max_bytes=512 * MIB) as (_, bus):
        blob = await blobs.put(bus, "alice", tmp_path / "largest")

        assert await blobs.get(bus, "alice", blob.sha256, blob.size_bytes) == data


async def test_what_is_there_is_not_sent_again(bus: Bus) -> None:
    data = some(3 * CHUNK_BYTES)
    one, two = [await blobs.put(bus, "alice", data) for _ in range(2)]

    assert one == two
    assert (await bus.info()).messages == 3


async def test_spaces_share_nothing(bus: Bus) -> None:
    blob = await blobs.put(bus, "alice", b"hers")

    with pytest.raises(Forgotten):
        await blobs.get(bus, "bob", blob.sha256, blob.size_bytes)


async def test_an_erased_blob_is_forgotten_and_may_be_put_again(bus: Bus) -> None:
    data = some(3 * CHUNK_BYTES)
    blob = await blobs.put(bus, "alice", data)
    assert await blobs.erase(bus, "alice", blob.sha256) == 3
    assert await blobs.erase(bus, "alice", blob.sha256) == 0

    with pytest.raises(Forgotten):
        await blobs.get(bus, "alice", blob.sha256, blob.size_bytes)
    await blobs.put(bus, "alice", data)
    assert await blobs.get(bus, "alice", blob.sha256, blob.size_bytes) == data


@pytest.mark.parametrize("missing", [1, 2, 3])
async def test_a_blob_erased_in_part_is_forgotten(bus: Bus, missing: int) -> None:
    blob = await blobs.put(bus, "alice", some(3 * CHUNK_BYTES))
    await bus.erase(missing)

    with pytest.raises(Forgotten, match="in part"):
        await blobs.get(bus, "alice", blob.sha256, blob.size_bytes)


async def test_an_interrupted_erasure_is_never_taken_for_a_whole_blob(bus: Bus) -> None:
    data = some(3 * CHUNK_BYTES)
    blob = await blobs.put(bus, "alice", data)
    await bus.erase(3)  # the first thing that `erase` does
    await blobs.put(bus, "alice", data)

    assert await blobs.get(bus, "alice", blob.sha256, blob.size_bytes) == data
    assert await blobs.erase(bus, "alice", blob.sha256) == 5


async def test_wrong_bytes_are_invalid(bus: Bus) -> None:
    subject = ids.blob_subject("alice", "0" * 64)
    await bus.publish(subject, b"not what the name says", headers={blobs.CHUNK: "1/1"})
    with pytest.raises(Invalid, match="checksum"):
        await blobs.get(bus, "alice", "0" * 64, 22)
    blob = await blobs.put(bus, "alice", b"abc")
    with pytest.raises(Invalid, match="size"):
        await blobs.get(bus, "alice", blob.sha256, 4)


@pytest.mark.parametrize("place", ["", "1", "/", "a/b", "-1/2", "¹/²"])
async def test_a_message_that_is_no_chunk_is_invalid(bus: Bus, place: str) -> None:
    await bus.publish(ids.blob_subject("alice", "0" * 64), b"x", headers={blobs.CHUNK: place})

    with pytest.raises(Invalid):
        await blobs.get(bus, "alice", "0" * 64, 1)


async def test_too_large_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    bus = MemoryBus(MemoryLog())
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(MAX_BLOB_BYTES + 1)
    with pytest.raises(TooLarge):
        await blobs.put(bus, "alice", tmp_path / "sparse")
    assert bus.log.last_seq == 0


async def test_an_unreadable_file_is_denied(tmp_path: Path) -> None:
    with pytest.raises(Denied):
        await blobs.put(MemoryBus(MemoryLog()), "alice", tmp_path / "missing")


async def test_a_full_log_holds_no_part_of_it(tmp_path: Path) -> None:
    async with local_bus(tmp_path, max_bytes=MIB) as (_, bus):
        await bus.publish_batch([Outgoing("lamina.ev.1.a.k", b"x")])
        with pytest.raises(LogFull):
            await blobs.put(bus, "alice", some(2 * MIB))
        assert (await bus.info()).messages == 1


async def test_away_is_unavailable() -> None:
    log = MemoryLog()
    bus = MemoryBus(log)
    blob = await blobs.put(bus, "alice", b"x")
    log.down = True

    with pytest.raises(Unavailable):
        await blobs.put(bus, "alice", b"y")
    with pytest.raises(Unavailable):
        await blobs.get(bus, "alice", blob.sha256, 1)
