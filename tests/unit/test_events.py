"""The event model: what is kept, what is refused, and what an unreadable event is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lamina import events, ids
from lamina.errors import Invalid, TooLarge
from lamina.events import Blob, Event, MemoryStated, SessionEnded, StepFailed, ToolReturned, TurnRecorded

NOW = datetime(2026, 11, 30, 9, 15, tzinfo=UTC)


def made(data: msgspec.Struct, **more: Any) -> Event:
    return events.make(data, id="e1", space="alice", time=NOW, **more)


class TestCanonical:
    def test_is_compact_utf_8_with_fields_in_order_and_keys_sorted(self) -> None:
        data = ToolReturned(tool="t", arguments={"z": 1, "한": [1.5, None, True], "a": {"y": 1, "x": 2}}, result="r")

        assert events.canonical(data) == (
            '{"tool":"t","arguments":{"a":{"x":2,"y":1},"z":1,"한":[1.5,null,true]},"result":"r"}'.encode()
        )

    def test_says_the_same_for_mappings_in_any_order(self) -> None:
        assert events.canonical({"a": 1, "b": 2}) == events.canonical({"b": 2, "a": 1})

    @pytest.mark.parametrize(
        "value",
        [
            float("nan"),
            float("inf"),
            "\ud800",
            {1: "x"},
            {"\ud800": 1},
            {"a", "b"},
            b"bytes",
            NOW,
            object(),
            10**30 + 0.5j,
        ],
    )
    @pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": [x]}, lambda x: (x,)])
    def test_refuses_what_json_cannot_hold(self, value: object, wrap: Callable[[object], object]) -> None:
        with pytest.raises(Invalid):
            events.canonical(wrap(value))

    def test_looks_into_no_object_that_is_written_as_another_thing(self) -> None:
        @dataclass
        class Point:
            x: float

        with pytest.raises(Invalid, match="Point"):
            events.canonical({"at": Point(float("nan"))})

    def test_refuses_bottomless_nesting(self) -> None:
        endless: list[object] = []
        endless.append(endless)
        with pytest.raises(Invalid, match="deep"):
            events.canonical(endless)

    def test_whole_numbers_of_any_size_are_kept(self) -> None:
        assert json.loads(events.canonical({"n": 10**30})) == {"n": 10**30}


class TestMake:
    def test_fills_the_envelope(self) -> None:
        event = made(TurnRecorded(role="user", text="hi"), session="s", agent="a", project="p", cause=("c",))

        assert (event.type, event.v, event.space, event.session) == ("turn.recorded", 1, "alice", "s")
        assert (event.agent, event.project, event.cause) == ("a", "p", ("c",))
        assert event.time == "2026-11-30T09:15:00.000000+00:00"
        assert event.when == NOW
        assert event.sha256 == hashlib.sha256(bytes(event.data)).hexdigest()

    @pytest.mark.parametrize("field", ["space", "session", "agent", "project"])
    @pytest.mark.parametrize(("value", "kind"), [("x" * 121, TooLarge), ("\udcff", Invalid)])
    def test_names_the_id_that_cannot_be_one(self, field: str, value: str, kind: type[Exception]) -> None:
        names: dict[str, Any] = {"space": "alice", field: value}
        with pytest.raises(kind, match=field):
            events.make(SessionEnded(), id="e", time=NOW, **names)

    def test_refuses_data_above_its_limit(self) -> None:
        with pytest.raises(TooLarge, match="bytes"):
            made(TurnRecorded(role="user", text="x" * (2 * events.MAX_INLINE_BYTES)))

    def test_refuses_what_is_no_event_type(self) -> None:
        with pytest.raises(Invalid, match="Blob"):
            made(Blob("a", 1))

    def test_refuses_naive_times(self) -> None:
        with pytest.raises(Invalid, match="offset"):
            events.make(SessionEnded(), id="e", space="a", time=NOW.replace(tzinfo=None))


class TestDecode:
    def test_a_type_not_known_here_is_kept_as_it_came(self) -> None:
        event = events.make_raw("atoms.merged", b'{"b": 1,  "a":2}', id="e", space="a", time=NOW)

        back = events.decode(events.encode(event))

        assert bytes(back.data) == b'{"b": 1,  "a":2}'
        assert back.type == "atoms.merged"
        assert events.decode_data(back) is None

    def test_fields_not_known_here_do_no_harm(self) -> None:
        raw = json.loads(events.encode(made(SessionEnded())))
        raw["later"] = {"x": 1}

        assert events.decode(json.dumps(raw).encode()).id == "e1"

    def test_unknown_data_fields_do_no_harm(self) -> None:
        event = events.make_raw("turn.recorded", b'{"role":"user","text":"x","mood":1}', id="e", space="a", time=NOW)

        assert events.decode_data(event) == TurnRecorded(role="user", text="x")

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"null",
            b"[]",
            b"{}",
            b"\xff\xfe",
            b"{" * 100_000,
            b"[" * 100_000,
            b'{"id":1}',
            events.encode(made(SessionEnded()))[:-1],
            events.encode(made(SessionEnded())) + b"x",
            events.encode(made(SessionEnded())).replace(b'"v":1', b'"v":NaN'),
        ],
    )
    def test_what_is_no_event_is_invalid(self, raw: bytes) -> None:
        with pytest.raises(Invalid, match="not an event"):
            events.decode(raw)

    def test_changed_data_is_seen(self) -> None:
        raw = events.encode(made(MemoryStated(text="tea")))

        with pytest.raises(Invalid, match="checksum"):
            events.decode(raw.replace(b"tea", b"tee"))

    def test_bytes_that_are_no_utf_8_are_invalid_wherever_they_stand(self) -> None:
        data = b'{"text":"\xff"}'
        for raw in (
            events.encode(events.make_raw("memory.stated", data, id="e", space="a", time=NOW)),
            events.encode(made(SessionEnded()))[:-1] + b',"later":"\xff"}',
        ):
            with pytest.raises(Invalid, match="utf-8"):
                events.decode(raw)

    @pytest.mark.parametrize(
        ("type", "data"),
        [
            ("turn.recorded", b"{}"),
            ("turn.recorded", b'{"role":"user","text":5}'),
            ("turn.recorded", b'{"role":"user","text":{"sha256":"x","size_bytes":1,"other":2}}'),
            ("tool.returned", b'{"tool":"t","arguments":[],"result":""}'),
            ("memory.stated", b'{"text":"\\ud800"}'),
            ("session.ended", b"[" * 5_000 + b"]" * 5_000),
            ("session.ended", b"1e400"),
        ],
    )
    def test_data_of_another_shape_is_invalid(self, type: str, data: bytes) -> None:
        event = events.make_raw(type, data, id="e9", space="a", time=NOW)

        with pytest.raises(Invalid, match="e9"):
            events.decode_data(event)


class TestBlobs:
    def test_are_those_that_the_data_names(self) -> None:
        one, two, three = (Blob(f"{n}" * 64, n) for n in range(3))

        assert events.blobs_of(TurnRecorded(role="user", text=one, parts=(two, three))) == (one, two, three)
        assert events.blobs_of(ToolReturned(tool="t", arguments={}, result="r", parts=(two,))) == (two,)
        assert events.blobs_of(SessionEnded()) == ()

    def test_a_text_and_a_blob_are_told_apart(self) -> None:
        blob = Blob("a" * 64, 5, name="x.txt")
        for data in (TurnRecorded(role="user", text=blob), TurnRecorded(role="user", text='{"sha256":"a"}')):
            assert events.decode_data(made(data)) == data


class TestDecisions:
    def test_are_read_of_any_type(self) -> None:
        event = events.make_raw(
            "atoms.merged", b'{"step":"atoms.x","n":3,"inputs":["a"],"y":1}', id="e", space="a", time=NOW
        )

        assert events.read_decision(event) == events.Decision("atoms.x", 3, ("a",))

    def test_source_events_are_none(self) -> None:
        assert events.read_decision(made(TurnRecorded(role="user", text="step"))) is None

    def test_a_failure_is_one(self) -> None:
        failure = StepFailed(step="toy.x", n=2, inputs=("a", "b"), attempt=1, error="Timeout")

        assert events.read_decision(made(failure)) == events.Decision("toy.x", 2, ("a", "b"))


def test_ids_of_sources_never_depend_on_the_text() -> None:
    assert ids.source_id("a", "s", "t", "turn.recorded") != ids.source_id("a", "s", "t", "tool.returned")
