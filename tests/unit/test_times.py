"""Times: the offset is kept, order is in UTC, and nothing is guessed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamina import times
from lamina.errors import Invalid


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2026-11-30T09:15:00+09:00", "2026-11-30T09:15:00.000000+09:00"),
        ("2026-11-30t09:15:00z", "2026-11-30T09:15:00.000000+00:00"),
        ("2026-11-30 09:15:00.5-03:30", "2026-11-30T09:15:00.500000-03:30"),
        ("2026-11-30T09:15:00.123456789Z", "2026-11-30T09:15:00.123456+00:00"),
        ("2024-02-29T23:59:59.999999999Z", "2024-02-29T23:59:59.999999+00:00"),
    ],
)
def test_reads_rfc_3339_and_keeps_the_offset(text: str, kept: str) -> None:
    assert times.text_of(times.parse(text)) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-30",
        "2026-11-30T09:15:00",
        "2026-11-30T09:15Z",
        "2026-02-30T09:15:00Z",
        "2026-11-30T24:15:00Z",
        "2026-11-30T09:15:60Z",
        "2026-11-30T09:15:00+25:00",
        "2026-11-30T09:15:00.1234567890Z",
        "2026-11-30T09:15:00Z ",
        "2026-11-30T09:15:00Z\n",
        "٢٠٢٦-11-30T09:15:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-00:01",
        "2026-11-30T09:15:00Z" * 1000,
    ],
)
def test_refuses_what_is_no_time_or_has_no_offset(text: str) -> None:
    with pytest.raises(Invalid):
        times.aware(text)


def test_refuses_naive_times_and_other_things() -> None:
    for value in (datetime(2026, 1, 1), 5, b"2026-01-01T00:00:00Z"):  # noqa: DTZ001 - that is the point
        with pytest.raises(Invalid):
            times.aware(value)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        times.text_of(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


def test_refuses_what_utc_cannot_hold() -> None:
    for value in (
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1, seconds=-1))),
    ):
        with pytest.raises(Invalid):
            times.aware(value)
        with pytest.raises(Invalid):
            times.text_of(value)


def test_the_future_is_a_time_like_any_other() -> None:
    assert times.aware("9999-12-31T23:59:59Z").year == 9999


def test_none_is_now_with_this_machines_offset() -> None:
    before = datetime.now(UTC)
    now = times.aware(None)

    assert before <= now <= datetime.now(UTC)
    assert now.utcoffset() is not None
    assert times.aware(None, now=before) is before


def test_offsets_with_seconds_become_utc() -> None:
    local_mean_time = timezone(timedelta(hours=8, minutes=27, seconds=52))

    text = times.text_of(datetime(1905, 1, 1, 8, 27, 52, tzinfo=local_mean_time))

    assert text == "1905-01-01T00:00:00.000000+00:00"


def test_microseconds_compare_in_utc() -> None:
    assert times.micros(times.parse("1970-01-01T09:00:00.000001+09:00")) == 1
    assert times.micros(times.parse("1969-12-31T23:59:59.999999Z")) == -1
    assert times.text_of(times.from_micros(-1)) == "1969-12-31T23:59:59.999999+00:00"


@pytest.mark.parametrize("us", [10**18, -(10**18), 2**63])
def test_what_is_no_time_is_invalid(us: int) -> None:
    with pytest.raises(Invalid):
        times.from_micros(us)
