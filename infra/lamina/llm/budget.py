"""How much may be asked: pure functions over what was spent, and the day's total of this process."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from lamina.config import LlmConfig


class Spent(Struct, frozen=True, kw_only=True):
    """Tokens of one day (UTC), of answers and of failures alike."""

    in_space: int
    in_all: int


def day_of(now: datetime) -> str:
    """The day that a moment counts for, as YYYY-MM-DD in UTC."""
    return now.astimezone(UTC).date().isoformat()


def refused(config: LlmConfig, spent: Spent, needed: int) -> str:
    """Why `needed` tokens more may not be asked for; empty where they may. 0 as a limit is none."""
    limits = (
        ("tokens_per_day", config.tokens_per_day, spent.in_all),
        ("tokens_per_space", config.tokens_per_space, spent.in_space),
    )
    for key, limit, used in limits:
        if limit and used + needed > limit:
            return f"llm.{key}: {used} of {limit} tokens are used today, {needed} more may be needed"
    return ""


class Meter:
    """What all spaces spent on the day, as far as this process knows: a space counts from when it was first told.

    A view knows what its own space spent, whatever was restarted; only the sum over spaces is kept here.
    """

    def __init__(self) -> None:
        self._day = ""
        self._spaces: dict[str, int] = {}

    def note(self, space: str, day: str, tokens: int) -> Spent:
        """`tokens` were spent in `space` on `day`, says its view; or more, as was noted or added before."""
        self._turn(day)
        if day == self._day:
            self._spaces[space] = max(tokens, self._spaces.get(space, 0))
        return Spent(in_space=max(tokens, self._spaces.get(space, 0)), in_all=sum(self._spaces.values()))

    def add(self, space: str, day: str, tokens: int) -> None:
        """A call has just cost this much, which the view does not know yet."""
        self._turn(day)
        if day == self._day:
            self._spaces[space] = self._spaces.get(space, 0) + tokens

    def _turn(self, day: str) -> None:
        if day > self._day:
            self._day = day
            self._spaces.clear()
