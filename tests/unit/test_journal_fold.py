"""The journal: every event a ledger line as it came, what was said a row that is found."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from lamina import events, ids, times
from lamina.bus import blobs
from lamina.bus.memory import MemoryBus
from lamina.events import MemoryForgotten, MemoryStated, SessionEnded, ToolReturned, TurnRecorded
from lamina.journal.service import service
from lamina.runtime.worker import Worker
from tests.support.bench import Bench
from tests.support.toy import applied, indexed, ledger, rows, running, until, view_file

START_US = 1_764_547_199_000_000  # 2025-11-30 23:59:59 UTC


async def written(bench: Bench) -> None:
    """Fold everything that is in the log."""
    async with running(Worker(service(), MemoryBus(bench.log), bench.home)):
        await until(lambda: applied(bench.home, "alice", "journal") == bench.log.last_seq)


async def put(bench: Bench, data: Any, id: str, **more: Any) -> bytes:
    event = events.make(data, id=id, space="alice", time=times.from_micros(0), **more)
    raw = events.encode(event)
    await bench.bus.publish(ids.event_subject("alice", event.type), raw)
    return raw


def view(bench: Bench, sql: str) -> list[tuple[Any, ...]]:
    return rows(view_file(bench.home, "alice", "journal"), sql)


async def test_a_line_holds_seq_arrival_and_the_bytes_as_they_came(bench: Bench) -> None:
    bench.log.now_us = lambda: START_US
    raw = await put(bench, TurnRecorded(role="user", text="안녕 🎉"), "e1", session="s", agent="a", project="p")
    await written(bench)

    assert ledger(bench.home) == b'{"seq":1,"at":"2025-11-30T23:59:59.000000+00:00","event":' + raw + b"}\n"
    assert [path.name for path in (bench.home.spaces / "alice" / "log").glob("*.jsonl")] == ["2025-11-30.jsonl"]
    assert view(bench, "SELECT seq, id, type, session, role, agent, project, text FROM turns") == [
        (1, "e1", "turn.recorded", "s", "user", "a", "p", "안녕 🎉")
    ]


async def test_a_clock_that_goes_back_never_opens_an_earlier_file(bench: Bench) -> None:
    clock = [START_US]
    bench.log.now_us = lambda: clock[0]
    for n, step_s in enumerate([0, 2, -7_200, 86_400, -200_000]):
        clock[0] += step_s * 1_000_000
        await put(bench, MemoryStated(text=f"note {n}"), f"e{n}")
    await written(bench)

    folder = bench.home.spaces / "alice" / "log"
    days = {path.name: path.read_bytes().count(b"\n") for path in sorted(folder.glob("*.jsonl"))}
    assert days == {"2025-11-30.jsonl": 1, "2025-12-01.jsonl": 4}
    assert [json.loads(line)["seq"] for line in ledger(bench.home).splitlines()] == [1, 2, 3, 4, 5]


async def test_the_first_of_an_id_stands_and_another_is_a_conflict(bench: Bench) -> None:
    for text in ("tea", "tea", "coffee"):
        await put(bench, MemoryStated(text=text), "e1")
    await written(bench)

    assert view(bench, "SELECT seq, text FROM turns") == [(1, "tea")]
    assert view(bench, "SELECT seq, id FROM conflicts") == [(3, "e1")]
    assert [json.loads(line)["seq"] for line in ledger(bench.home).splitlines()] == [1, 3], "nothing said is lost"


async def test_every_event_is_in_the_ledger_also_what_is_none(bench: Bench) -> None:
    noise = b"\xff\x00 no event\n"
    await bench.bus.publish(ids.event_subject("alice", "turn.recorded"), noise)
    unknown = events.encode(
        events.make_raw("moon.rose", b'{"a": 1}', id="m", space="alice", time=times.from_micros(0))
    )
    await bench.bus.publish(ids.event_subject("alice", "moon.rose"), unknown)
    future = events.encode(events.make(MemoryStated(text="x"), id="f", space="alice", time=times.from_micros(0)))
    await bench.bus.publish(ids.event_subject("alice", "memory.stated"), future.replace(b'"v":1', b'"v":7'))
    await put(bench, SessionEnded(), "end", session="s")
    await put(bench, MemoryForgotten(ids=("f",)), "gone")
    timeless = events.encode(events.make(MemoryStated(text="when"), id="t", space="alice", time=times.from_micros(0)))
    await bench.bus.publish(
        ids.event_subject("alice", "memory.stated"),
        timeless.replace(b"1970-01-01T00:00:00.000000+00:00", b"some day"),
    )
    await written(bench)

    lines = [json.loads(line) for line in ledger(bench.home).splitlines()]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert base64.b64decode(lines[0]["malformed"]) == noise
    assert [line["event"]["id"] for line in lines[1:]] == ["m", "f", "end", "gone", "t"]
    assert unknown in ledger(bench.home)
    assert [row[0] for row in view(bench, "SELECT id FROM dead ORDER BY seq")] == ["", "f"]
    assert view(bench, "SELECT text FROM turns") == [("when",)]
    assert view(bench, "SELECT session, ended FROM sessions WHERE session = 's'") == [("s", 1)]


async def test_long_and_binary_texts_are_indexed_from_their_blobs(bench: Bench) -> None:
    long = await blobs.put(bench.bus, "alice", b"needle " + b"hay " * 100_000)
    binary = await blobs.put(bench.bus, "alice", b"\xff\xfe thimble")
    await put(bench, TurnRecorded(role="user", text=long), "e1", session="s")
    await put(bench, ToolReturned(tool="cat", arguments={"path": "sewing.bin"}, result=binary), "e2", session="s")
    await written(bench)

    words = {row[0] for row in indexed(view_file(bench.home, "alice", "journal"), "turns_fts")}
    assert {"needl", "thimbl"} <= words
    assert any(word.startswith("sew") for word in words)
    for blob in (long, binary):
        assert (bench.home.spaces / "alice" / "blobs" / blob.sha256).stat().st_size == blob.size_bytes


@pytest.mark.parametrize(
    "text", ["\0", "a\0b", '"', "'; DROP TABLE turns; --", "\u202e", "{}", "\x7f" * 100, "🎉" * 999]
)
async def test_any_text_is_kept_as_it_is(bench: Bench, text: str) -> None:
    await put(bench, TurnRecorded(role="user", text=text, name=text, turn_id=text), "e1", session=text[:5])
    await written(bench)

    assert view(bench, "SELECT text, name, turn_id, session FROM turns") == [(text, text, text, text[:5])]
