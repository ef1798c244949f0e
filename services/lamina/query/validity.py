"""The other clock: when a statement held in the world, whatever was known of it when. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from lamina.errors import Invalid
from lamina.times import parse

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", re.ASCII)


def held(valid_from: str, until: str, said: str, at: datetime) -> bool:
    """Did a statement hold at `at`? From `valid_from` on (where that is not told: from when it was `said`) and until
    `until`. A day, month or year counts whole, in UTC; what cannot be read bounds nothing."""
    first = _bounds(valid_from or said)
    last = _bounds(until)
    return (first is None or first[0] <= at) and (last is None or at < last[1])


def _bounds(text: str) -> tuple[datetime, datetime] | None:
    """The first moment of a time, day, month or year, and the moment behind its last."""
    found = _DATE.fullmatch(text)
    try:
        if found is None:
            return (parse(text), parse(text)) if text else None
        year, month, day = int(found[1]), int(found[2] or 1), int(found[3] or 1)
        first = datetime(year, month, day, tzinfo=UTC)
        if found[3]:
            return first, first + timedelta(days=1)
        behind = (year, month + 1) if found[2] and month < 12 else (year + 1, 1)
        return first, datetime(*behind, 1, tzinfo=UTC)
    except (Invalid, ValueError, OverflowError):
        return None
