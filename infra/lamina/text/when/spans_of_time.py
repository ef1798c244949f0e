"""Days, weeks, months and years as the inclusive range of days they are."""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from typing import Literal, TypeAlias

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


Range: TypeAlias = tuple[date, date]
Side: TypeAlias = Literal[-1, 0, 1]
"""Where a day lies that is named without its year or week: behind the speaker, nobody says, or ahead."""
Yearly: TypeAlias = tuple[int, int, int, int]
"""What comes back every year: its first month and day, its last month and day."""
Part: TypeAlias = Literal["start", "early", "mid", "late", "end", "first half", "second half"]
_FAR, _CLOSE = 300, 60  # days: one told of as past, last a year ago and here again in two months, is ahead
_RECENT, _DISTANT = 60, 200  # and where nobody says, one just gone is meant rather than one far ahead


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


def near(base: date, number: int, side: Side) -> Range | None:
    """The last weekday `number` before `base` where it is behind, else the next one after it."""
    ahead = (number - base.weekday()) % 7
    return day(base, ahead - 7 if side < 0 else ahead or 7)


def near_weekend(base: date, side: Side) -> Range | None:
    """The weekend of this week; on a Saturday or Sunday, and where it is behind, the one that is over."""
    return weekend(base, -1 if side < 0 and base.weekday() < 6 else 0)


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


def exact(year_: int, month_: int, day_: int) -> Range | None:
    """The day of the calendar, None where there is none such."""
    whole = month(year_, month_)
    if whole is None or not 1 <= day_ <= whole[1].day:
        return None
    found = whole[0].replace(day=day_)
    return found, found


def nearest_year(base: date, month_: int, day_: int | None, side: Side) -> Range | None:
    """A day or month named without its year."""
    if not 1 <= month_ <= 12:
        return None
    return yearly(base, (month_, day_ or 1, month_, day_ or 31), side)


def yearly(base: date, when: Yearly, side: Side) -> Range | None:
    """The one of what comes back every year that lies on `side` of `base`; the one that is on, where one is."""
    found = [one for number in (-1, 0, 1) if (one := in_year(base.year + number, when))]
    behind = [one for one in found if one[0] <= base]
    ahead = [one for one in found if one[1] >= base]
    if not behind or not ahead or behind[-1] == ahead[0]:
        return next(iter(ahead or behind), None)
    since, until = (base - behind[-1][0]).days, (ahead[0][0] - base).days
    if side < 0:
        single = when[:2] == when[2:]
        return ahead[0] if single and since > _FAR and until < _CLOSE else behind[-1]
    return behind[-1] if side == 0 and since <= _RECENT and until >= _DISTANT else ahead[0]


def over(base: date, when: Yearly) -> Range | None:
    """The last one of what comes back every year that had ended before `base`."""
    found = [one for number in (-2, -1, 0) if (one := in_year(base.year + number, when)) and one[1] < base]
    return found[-1] if found else None


def to_come(base: date, when: Yearly) -> Range | None:
    """The next one of what comes back every year that begins after `base`."""
    found = [one for number in (0, 1) if (one := in_year(base.year + number, when)) and one[0] > base]
    return found[0] if found else None


def in_year(year_: int, when: Yearly) -> Range | None:
    """What comes back every year as it began in `year_`; a day past the end of its month is the month's last."""
    first, last = month(year_, when[0]), month(year_ + (when[:2] > when[2:]), when[2])
    if first is None or last is None or (when[:2] == when[2:] and when[1] > first[1].day):
        return None
    return first[0].replace(day=min(when[1], first[1].day)), last[0].replace(day=min(when[3], last[1].day))


def quarter(year_: int, number: int) -> Range | None:
    """The quarter `number` of the calendar, counted on over the ends of years: 0 is the last of the year before."""
    moved = year_ + (number - 1) // 4
    return in_year(moved, ((number - 1) % 4 * 3 + 1, 1, (number - 1) % 4 * 3 + 3, 31))


def part(of: Range, name: Part) -> Range | None:
    """A part of a week, month or year: thirds of a month, the first and last month of a year, halves, first and last days.

    The end of a month is its last day, as deadlines mean it.
    """
    first, last = of
    if (last - first).days > 31:
        months: dict[Part, Yearly] = {
            "start": (1, 1, 1, 31),
            "early": (1, 1, 3, 31),
            "mid": (5, 1, 8, 31),
            "late": (10, 1, 12, 31),
            "end": (12, 1, 12, 31),
            "first half": (1, 1, 6, 30),
            "second half": (7, 1, 12, 31),
        }
        return in_year(first.year, months[name])
    if (last - first).days <= 7:
        days = {"start": (0, 0), "early": (0, 1), "mid": (2, 2), "late": (3, 4), "end": (4, 4)}
        begin, end = days.get(name, (0, 6))
        return first + timedelta(days=begin), first + timedelta(days=end)
    thirds = {"start": (1, 1), "early": (1, 10), "mid": (11, 20), "late": (21, 31), "end": (31, 31)}
    begin, end = thirds.get(name) or {"first half": (1, 15)}.get(name, (16, 31))
    return first.replace(day=min(begin, last.day)), first.replace(day=min(end, last.day))


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


def nth(base: date, number: int, side: Side) -> Range | None:
    """A day of the month named without its month: the nearest one on the side that is told of."""
    for months in (0, -1) if side < 0 else (0, 1, 2):
        found = exact(*months_after(base, months), number)
        if found and (found[0] <= base if side < 0 else found[0] >= base):
            return found
    return None
