"""Upcasters: old data in today's shape, one step after another; data from the future is left alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lamina import events, upcast
from lamina.errors import Invalid
from lamina.events import MemoryStated

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def to_2(data: dict[str, Any]) -> dict[str, Any]:
    return {"body": data["words"]}


def to_3(data: dict[str, Any]) -> dict[str, Any]:
    return {"text": data["body"].strip()}


STEPS: dict[tuple[str, int], upcast.Step] = {("memory.stated", 1): to_2, ("memory.stated", 2): to_3}
VERSIONS = {"memory.stated": 3}


@pytest.mark.parametrize(
    ("v", "data"), [(1, {"words": " tea "}), (2, {"body": " tea "}), (3, {"text": "tea"})], ids=["v1", "v2", "v3"]
)
def test_lifts_through_every_step(v: int, data: dict[str, Any]) -> None:
    before = dict(data)

    assert upcast.lift("memory.stated", v, data, steps=STEPS, versions=VERSIONS) == {"text": "tea"}
    assert data == before


@pytest.mark.parametrize("v", [4, 0, -1, 10**30])
def test_a_version_not_known_is_invalid_and_says_what_to_do(v: int) -> None:
    with pytest.raises(Invalid, match="upgrade lamina"):
        upcast.lift("memory.stated", v, {}, steps=STEPS, versions=VERSIONS)


def test_a_missing_step_is_invalid() -> None:
    with pytest.raises(Invalid, match="version 2 to 3"):
        upcast.lift("memory.stated", 1, {"words": ""}, steps={("memory.stated", 1): to_2}, versions=VERSIONS)


@pytest.mark.parametrize("data", [[], None, 5, "x"])
def test_data_that_is_no_object_is_invalid(data: Any) -> None:
    with pytest.raises(Invalid, match="object"):
        upcast.lift("memory.stated", 1, data, steps=STEPS, versions=VERSIONS)


def test_the_decoding_edge_lifts_and_leaves_the_bytes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = events.encode(events.make_raw("memory.stated", b'{"words":" tea "}', id="e", space="a", time=NOW))
    monkeypatch.setattr(upcast, "VERSIONS", VERSIONS)
    monkeypatch.setattr(upcast.lift, "__kwdefaults__", {"steps": STEPS, "versions": VERSIONS})

    event = events.decode(raw)

    assert events.decode_data(event) == MemoryStated(text="tea")
    assert events.encode(event) == raw


def test_an_event_of_the_future_is_read_but_not_its_data() -> None:
    raw = events.encode(events.make(MemoryStated(text="tea"), id="e7", space="a", time=NOW)).replace(
        b'"v":1', b'"v":2'
    )

    event = events.decode(raw)

    with pytest.raises(Invalid, match="upgrade lamina"):
        events.decode_data(event)
