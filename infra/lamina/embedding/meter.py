"""What may be sent on one day: a limit for what costs money, so that no mistake costs more than a day's worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

BYTES_A_TOKEN = 4


def utc_day() -> str:
    return datetime.now(UTC).date().isoformat()


class Meter:
    """Of one process, from when it started. Texts that are asked for again after a failure count again."""

    def __init__(self, tokens_per_day: int, today: Callable[[], str] = utc_day) -> None:
        self._limit = tokens_per_day
        self._today = today
        self._day = ""
        self._used = 0

    @property
    def full(self) -> str:
        """Why nothing more is sent today; empty while there is room, and always without a limit."""
        self._turn()
        if not self._limit or self._used < self._limit:
            return ""
        return f"embedding.tokens_per_day: {self._limit} tokens are used today (UTC); texts wait, questions go on"

    def add(self, texts: Sequence[str]) -> None:
        self._turn()
        self._used += sum(len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN + 1 for text in texts)

    def _turn(self) -> None:
        day = self._today()
        if day != self._day:
            self._day, self._used = day, 0
