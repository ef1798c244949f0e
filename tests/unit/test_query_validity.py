"""When a statement held: from and until, in times, days, months and years, or as it was said."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lamina.query.validity import held

SAID = "2024-03-05T10:00:00+09:00"


@pytest.mark.parametrize(
    ("valid_from", "until", "at", "is_so"),
    [
        ("", "", datetime(2024, 3, 5, 1, tzinfo=UTC), True),
        ("", "", datetime(2024, 3, 5, 0, 59, tzinfo=UTC), False),
        ("2020", "2022", datetime(2022, 12, 31, 23, tzinfo=UTC), True),
        ("2020", "2022", datetime(2023, 1, 1, tzinfo=UTC), False),
        ("2020-12", "2020-12", datetime(2020, 12, 31, 23, tzinfo=UTC), True),
        ("2020-12", "2020-12", datetime(2020, 11, 30, 23, tzinfo=UTC), False),
        ("2020-02-29", "2020-02-29", datetime(2020, 3, 1, tzinfo=UTC), False),
        ("2020-02-29", SAID, datetime(2024, 3, 5, 0, 59, tzinfo=UTC), True),
        ("2020-02-29", SAID, datetime(2024, 3, 5, 1, tzinfo=UTC), False),
        ("next spring", "0000-00-00", datetime(1999, 1, 1, tzinfo=UTC), True),
        ("9999-12-31", "9999-12-31", datetime(1999, 1, 1, tzinfo=UTC), True),
    ],
)
def test_bounds(valid_from: str, until: str, at: datetime, is_so: bool) -> None:
    assert held(valid_from, until, SAID, at) is is_so
