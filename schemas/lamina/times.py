"""Time as the log keeps it: RFC 3339 with the offset it was given, microseconds, compared in UTC."""

from __future__ import annotations

import re
from datetime import MAXYEAR, UTC, datetime, timedelta
from functools import lru_cache

from lamina.errors import Invalid

_CANONICAL_CHARS = len("2026-11-30T09:15:00.000000+09:00")
_PAST_MICROS = re.compile(r"(\.\d{6})\d+")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def aware(value: datetime | str | None, *, now: datetime | None = None) -> datetime:
    """`value` as an aware datetime; None is `now` (default: this machine's clock and offset).

    Text must be RFC 3339 with an offset; digits past the microsecond are cut. Naive or unreadable times
    are `Invalid`: a guessed zone would be an invented fact.
    """
    if value is None:
        return now if now is not None else datetime.now(UTC).astimezone()
    if isinstance(value, str):
        return parse(value)
    if not isinstance(value, datetime):
        raise Invalid(f"a time must be a datetime or RFC 3339 text, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise Invalid(f"{value.isoformat()} has no UTC offset; give one (datetime.astimezone())")
    return _in_range(value)


def parse(text: str) -> datetime:
    """Read RFC 3339 text with an offset; `Invalid` for anything else."""
    if not _RFC3339.fullmatch(text):
        raise Invalid(f"{text[:80]!r} is not an RFC 3339 time with an offset, such as 2026-11-30T09:15:00+09:00")
    if len(text) > _CANONICAL_CHARS:  # digits past the microsecond, which the canonical form has not
        text = _PAST_MICROS.sub(r"\1", text)
    try:
        value = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise Invalid(f"{text[:80]!r} is not a date of the calendar") from error
    return _in_range(value)


def text_of(value: datetime) -> str:
    """RFC 3339 text of an aware time: its own offset, six digits of a second, never `Z`."""
    offset = value.utcoffset()
    if offset is None:
        raise Invalid(f"{value.isoformat()} has no UTC offset; give one (datetime.astimezone())")
    _in_range(value)
    if offset.total_seconds() % 60:
        value = value.astimezone(UTC)  # RFC 3339 has no seconds in an offset (local mean time of old dates)
    return value.isoformat(timespec="microseconds")


def micros(value: datetime) -> int:
    """Microseconds since 1970 in UTC: the form in which views compare times."""
    delta = value - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def from_micros(value: int) -> datetime:
    """The UTC time of `micros`; `Invalid` outside of the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(microseconds=value)
    except OverflowError as error:
        raise Invalid(f"{value} microseconds since 1970 is outside of the years 1 to 9999") from error


def text_of_micros(value: int) -> str:
    """`text_of` of `from_micros`: what comes close together in time has all but the last digits in common."""
    second, rest = divmod(value, 1_000_000)
    return f"{_text_of_second(second)}.{rest:06d}+00:00"


@lru_cache(256)
def _text_of_second(second: int) -> str:
    return text_of(from_micros(second * 1_000_000))[: len("2026-11-30T09:15:00")]


def _in_range(value: datetime) -> datetime:
    if 1 < value.year < MAXYEAR:  # no offset leads out of the calendar
        return value
    if not _FIRST_US <= micros(value) <= _LAST_US:
        raise Invalid(f"{value.isoformat()} is outside of the years 1 to 9999 in UTC")
    return value


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = micros(datetime.min.replace(tzinfo=UTC))
_LAST_US = micros(datetime.max.replace(tzinfo=UTC))
