"""Events: what is made is read back the same; any bytes are an event or a typed error."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamina import events, times
from lamina.errors import Invalid, Permanent
from lamina.events import MemoryStated, StepFailed, ToolReturned, TurnRecorded

OFFSETS = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
MOMENTS = st.datetimes(timezones=OFFSETS)
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def holds_only_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, list):
        return all(map(holds_only_json, value))
    if isinstance(value, dict):
        return all(holds_only_json(part) for pair in value.items() for part in pair)
    return True


@given(st.dictionaries(ANY_TEXT, JSON, max_size=4))
def test_arguments_are_kept_faithfully_or_refused(arguments: dict[str, Any]) -> None:
    data = ToolReturned(tool="t", arguments=arguments, result="r")
    try:
        raw = events.canonical(data)
    except Invalid:
        assert not holds_only_json(arguments)
        return
    assert holds_only_json(arguments)
    assert json.loads(raw)["arguments"] == arguments
    assert events.canonical(json.loads(raw)) == events.canonical(json.loads(raw.decode()))


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT, MOMENTS)
def test_what_is_made_reads_back_the_same(text: str, space: str, session: str, agent: str, at: datetime) -> None:
    data = TurnRecorded(role="user", text=text, name=agent or None)
    try:
        event = events.make(data, id="e", space=space, session=session, agent=agent, time=at)
    except Permanent:
        return

    back = events.decode(events.encode(event))

    assert (back.space, back.session, back.agent) == (space, session, agent)
    assert back.when == at
    assert events.decode_data(back) == data
    assert events.encode(back) == events.encode(event)
    assert b"\n" not in events.encode(event)


@given(MOMENTS)
def test_times_keep_moment_and_offset(at: datetime) -> None:
    try:
        text = times.text_of(at)
    except Invalid:
        assert at.year in (1, 9999)
        return

    back = times.parse(text)

    assert back == at
    assert times.micros(back) == times.micros(at)
    assert times.from_micros(times.micros(at)) == at
    offset = at.utcoffset()
    assert offset is not None
    if offset.total_seconds() % 60 == 0:
        assert back.utcoffset() == offset


@given(MOMENTS, MOMENTS)
def test_microseconds_order_as_the_moments_do(one: datetime, other: datetime) -> None:
    assert (times.micros(one) < times.micros(other)) == (one < other)


@given(st.one_of(st.binary(max_size=60), JSON.map(lambda value: json.dumps(value).encode())))
def test_any_bytes_are_an_event_or_invalid(raw: bytes) -> None:
    try:
        event = events.decode(raw)
    except Invalid:
        return
    assert events.decode(events.encode(event)) == event


@given(st.sampled_from(sorted(events.TYPES)), JSON)
def test_any_data_is_its_types_or_invalid(type: str, data: Any) -> None:
    raw = json.dumps(data, allow_nan=False).encode() if holds_only_json(data) else b"{"
    event = events.make_raw(type, raw, id="e", space="a", time=times.from_micros(0))
    try:
        decoded = events.decode_data(event)
    except Invalid:
        return
    assert isinstance(decoded, events.TYPES[type])
    assert events.decode_data(events.make(decoded, id="e", space="a", time=times.from_micros(0))) == decoded


@given(st.binary(min_size=1, max_size=3), st.integers(0, 400))
def test_a_change_on_the_way_is_seen_or_changes_no_data(noise: bytes, at: int) -> None:
    event = events.make(MemoryStated(text="tea at five " * 5), id="e", space="a", time=times.from_micros(0))
    raw = bytearray(events.encode(event))
    raw[at % len(raw) : at % len(raw) + len(noise)] = noise
    try:
        changed = events.decode(bytes(raw))
    except Invalid:
        return
    assert bytes(changed.data) == bytes(event.data)


@given(st.text(max_size=20).filter(str.isprintable), st.integers(1, 2**63), st.lists(st.text(max_size=5), max_size=3))
def test_decisions_are_read_from_their_data(step: str, n: int, inputs: list[str]) -> None:
    failure = StepFailed(step=step, n=n, inputs=tuple(inputs), attempt=1, error="x")
    event = events.make(failure, id="e", space="a", time=times.from_micros(0))

    assert events.read_decision(event) == events.Decision(step, n, tuple(inputs))
