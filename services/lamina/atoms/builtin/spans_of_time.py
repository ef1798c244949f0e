"""Days, weeks, months and years as the inclusive range of days they are."""

from __future__ import annotations

import calendar
from datetime import date, timedelta

from msgspec import Struct

_FIRST, _LAST = date(1, 1, 10), date(9999, 12, 20)


class When(Struct, frozen=True):
    """Characters `start` up to `end` of a sentence mean the days `first` to `last`.

    `open`: it has held since `first` and goes on. `absolute`: the words alone say the days, whenever they are read.
    """

    start: int
    end: int
    first: date
    last: date
    absolute: bool = False
    open: bool = False

    def text(self) -> str:
        """`2023-05-07`, `2023-05`, `2023`, or two days joined by ` to `."""
        if self.first == self.last:
            return self.first.isoformat()
        if (self.first, self.last) == month(self.first.year, self.first.month):
            return self.first.isoformat()[:7]
        if (self.first, self.last) == year(self.first.year):
            return self.first.isoformat()[:4]
        return f"{self.first.isoformat()} to {self.last.isoformat()}"


Range = tuple[date, date]


def day(base: date, days: int) -> Range | None:
    """The day `days` after `base`; None outside of the calendar."""
    try:
        found = base + timedelta(days=days)
    except OverflowError:
        return None
    return (found, found) if _FIRST <= found <= _LAST else None


def week(base: date, weeks: int) -> Range | None:
    """Monday to Sunday of the week `weeks` after that of `base`."""
    found = day(base, weeks * 7 - base.weekday())
    return (found[0], found[0] + timedelta(days=6)) if found else None


def weekend(base: date, weeks: int) -> Range | None:
    """Saturday and Sunday of the week `weeks` after that of `base`."""
    found = week(base, weeks)
    return (found[0] + timedelta(days=5), found[1]) if found else None


def weekday(base: date, weeks: int, number: int) -> Range | None:
    """The weekday `number` (Monday is 0) of the week `weeks` after that of `base`."""
    found = week(base, weeks)
    return day(found[0], number) if found else None


def near(base: date, number: int, past: bool) -> Range | None:
    """The last (`past`) or next weekday `number` before or after `base`."""
    ahead = (number - base.weekday()) % 7
    return day(base, ahead - 7 if past else ahead or 7)


def months_after(base: date, months: int) -> tuple[int, int]:
    """Year and month, `months` after that of `base`."""
    total = base.year * 12 + base.month - 1 + months
    return total // 12, total % 12 + 1


def month(year_: int, number: int) -> Range | None:
    """The whole month."""
    if not (2 <= year_ <= 9998 and 1 <= number <= 12):
        return None
    return date(year_, number, 1), date(year_, number, calendar.monthrange(year_, number)[1])


def year(number: int) -> Range | None:
    """The whole year."""
    return (date(number, 1, 1), date(number, 12, 31)) if 2 <= number <= 9998 else None


def same_day(base: date, months: int) -> Range | None:
    """The day of `base` in the month `months` after it, or that month's last."""
    whole = month(*months_after(base, months))
    if whole is None:
        return None
    found = whole[0].replace(day=min(base.day, whole[1].day))
    return found, found


def exact(year_: int, month_: int, day_: int) -> Range | None:
    """The day of the calendar, None where there is none such."""
    whole = month(year_, month_)
    if whole is None or not 1 <= day_ <= whole[1].day:
        return None
    found = whole[0].replace(day=day_)
    return found, found


def nearest_year(base: date, month_: int, day_: int | None, past: bool) -> Range | None:
    """A day or month named without its year: the last one where `past`, else the next one."""
    for candidate in (base.year, base.year - 1 if past else base.year + 1):
        found = exact(candidate, month_, day_) if day_ else month(candidate, month_)
        if found and (found[0] <= base if past else found[1] >= base):
            return found
    return None


def ago(base: date, number: int, unit: str) -> Range | None:
    """`number` of `unit` (d w m y) away from `base`, negative for the past: a day, or the month or year it fell in.

    Weeks are counted to the day, as people mean by "two weeks ago"; a month ago is the month, a year ago the year.
    """
    if abs(number) > 9_000:
        return None
    if unit == "d":
        return day(base, number)
    if unit == "w":
        return day(base, number * 7)
    if unit == "m":
        return month(*months_after(base, number))
    return year(base.year + number)
