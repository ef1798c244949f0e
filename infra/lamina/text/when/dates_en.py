"""Time phrases of English, resolved against the day they were said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from lamina.text.when import spans_of_time as span
from lamina.text.when.patterns_dates_en import (
    DAY_NUMBER,
    EVERY,
    HINT,
    HOLIDAYS,
    MONTH_NUMBER,
    NUMBERS,
    PARTS,
    PHRASE,
    SEASONS,
)
from lamina.text.when.spans_of_time import Range, Side, When

_NAMED = {"yesterday": -1, "last night": -1, "tomorrow": 1}
_MAX_EVERY_CHARS = 24


def find(text: str, base: date, told: Callable[[int], Side]) -> Iterator[When]:
    """The time phrases of an English sentence, ages, durations and habits left out.

    `told` tells on which side of `base` a day lies that is named alone, of the character where it is named.
    """
    if not HINT.search(text):
        return
    for found in PHRASE.finditer(text):
        kind = next(name for name in _KINDS if found.group(name) is not None)
        start = found.start(kind)
        if EVERY.search(text, max(0, start - _MAX_EVERY_CHARS), start):
            continue
        days = _KINDS[kind](found, base, told(start))
        if days is not None:
            since = "since" in text[max(0, start - 6) : start + 6].lower()
            yield When(found.start(), found.end(), *days, absolute=_absolute(kind, found), open=since)


def _absolute(kind: str, found: re.Match[str]) -> bool:
    year = {"iso": "iso", "slash": "s3", "mdy": "y1", "dmy": "y2", "my": "y3", "iy": "y4"}.get(kind)
    return year is not None and found.group(year) is not None and (kind != "my" or found["y3"].isdecimal())


def _number(word: str) -> int:
    word = word.lower().removesuffix(" of")
    return int(word) if word.isdecimal() else NUMBERS.get(word.removeprefix("a ") if "couple" in word else word, 0)


def _month_of(name: str) -> int:
    return MONTH_NUMBER[name[:3].lower()]


def _weekday_of(name: str) -> int:
    return DAY_NUMBER[name[:3].lower()]


def _part(days: Range | None, name: str | None, deadline: str | None = None) -> Range | None:
    """The part of `days` that words like `early` or `end of` name; a deadline at its end is its last day."""
    if days is None or not name:
        return days
    part = PARTS[re.sub(r"^the | of$", "", name.lower()).strip(" -")]
    found = span.part(days, part)
    return (found[1], found[1]) if found and deadline and part == "end" else found


def _iso(found: re.Match[str], base: date, side: Side) -> Range | None:
    return span.exact(*(int(part) for part in re.split("[-/]", found["iso"])))


def _month_day(month: str, day: str, year: str | None, base: date, side: Side) -> Range | None:
    if year and year.isdecimal():
        return span.exact(int(year), _month_of(month), int(day))
    if year:
        return span.exact(base.year + _years(year), _month_of(month), int(day))
    return span.nearest_year(base, _month_of(month), int(day), side)


def _years(words: str) -> int:
    return -1 if "last" in words.lower() else 1 if "next" in words.lower() else 0


def _mdy(found: re.Match[str], base: date, side: Side) -> Range | None:
    return _month_day(found["m1"], found["d1"], found["y1"], base, side)


def _dmy(found: re.Match[str], base: date, side: Side) -> Range | None:
    return _month_day(found["m2"], found["d2"], found["y2"], base, side)


def _my(found: re.Match[str], base: date, side: Side) -> Range | None:
    year = found["y3"]
    number = int(year) if year.isdecimal() else base.year + _years(year)
    return _part(span.month(number, _month_of(found["m3"])), found["p3"], found["by3"])


def _slash(found: re.Match[str], base: date, side: Side) -> Range | None:
    first, second = int(found["s1"]), int(found["s2"])
    if first > 12:  # only then is the order certain to be day first; otherwise the American one is meant more often
        first, second = second, first
    if found["s3"]:
        return span.exact(int(found["s3"]), first, second)
    return span.nearest_year(base, first, second, side)


def _named(found: re.Match[str], base: date, side: Side) -> Range | None:
    said = found["named"].lower()
    if "before yesterday" in said or "before last" in said:
        return span.day(base, -2)
    if "after tomorrow" in said:
        return span.day(base, 2)
    return span.day(base, _NAMED.get(said, 0))


def _away(number: int, unit: str, base: date) -> Range | None:
    unit = unit.lower()
    if not number:
        return None
    if unit == "weekend":
        return span.weekend(base, number)
    if unit == "fortnight":
        return span.ago(base, 2 * number, "w")
    if unit == "quarter":
        return span.quarter(base.year, (base.month + 2) // 3 + number)
    if unit == "decade":
        return span.ago(base, 10 * number, "y")
    return span.ago(base, number, {"night": "d"}.get(unit, unit[0]))


def _ago(found: re.Match[str], base: date, side: Side) -> Range | None:
    return _away(-_number(found["n1"]), found["u1"], base)


def _half_ago(found: re.Match[str], base: date, side: Side) -> Range | None:
    """`half a year ago`, `a year and a half ago`, `two and a half years from now`."""
    unit = (found["hu"] or found["hu2"] or found["hu3"] or "year").lower()
    months = {"year": 12, "decade": 120}.get(unit, 0)
    whole = _number(found["hn"]) if found["hn"] else 0
    count = whole * months + months // 2
    if not months:  # half a month is fifteen days
        count = whole * 30 + 15
    return span.ago(base, -count if found["hd"].lower() in ("ago", "back") else count, "m" if months else "d")


def _in(found: re.Match[str], base: date, side: Side) -> Range | None:
    if found["n2"] and side < 0 and "time" not in found["in"].lower():
        return None  # "I read it in two days" is how long, not when
    count, unit = (found["n2"], found["u2"]) if found["n2"] else (found["n3"], found["u3"])
    return _away(_number(count), unit, base)


def _from(found: re.Match[str], base: date, side: Side) -> Range | None:
    """`a week from Friday`, `two weeks from tomorrow`, `a week ago Tuesday`."""
    what, number = found["fw"].lower(), _number(found["fn"])
    if found["fa"]:
        week = (
            span.near(base, _weekday_of(what), -1) if what[:3] in DAY_NUMBER else span.day(base, _NAMED.get(what, 0))
        )
        return span.day(week[0], -7 * number) if week else None
    anchor = span.near(base, _weekday_of(what), 1) if what[:3] in DAY_NUMBER else span.day(base, _NAMED.get(what, 0))
    return span.day(anchor[0], number * (7 if found["fu"].lower().startswith("week") else 1)) if anchor else None


def _of_week(found: re.Match[str], base: date, side: Side) -> Range | None:
    """`Tuesday of next week`, `next week on Tuesday`, `last week's Friday`."""
    day, how = (found["wk1"], found["wr1"]) if found["wk1"] else (found["wk2"], found["wr2"])
    week = -1 if "last" in how.lower() else 1 if how.lower() in ("next", "the following") else 0
    if day.lower().startswith("weekend"):
        return span.weekend(base, week)
    return span.weekday(base, week, _weekday_of(day))


def _rel(found: re.Match[str], base: date, side: Side) -> Range | None:
    how, what = found["r"].lower(), found["w"].lower()
    number = -1 if how in ("last", "this past", "past", "previous", "the previous") else 0 if how == "this" else 1
    if how == "past":
        return None  # "the past week" is how long
    found_part = found["rp"]
    if what == "weekend":
        return span.weekend(base, _weekends(base, how, number))
    if what in ("week", "month", "year", "quarter"):
        return _part(_whole(base, what, number), found_part, found["rby"])
    if what in SEASONS:
        return _repeated(base, number, SEASONS[what])
    if what[:3] in DAY_NUMBER and not (what[:3] == "mar" or what == "may"):
        return _weekday(base, how, _weekday_of(what))
    month = _month_of(what)
    if number == 0:
        return _part(span.month(base.year, month), found_part)
    shifted = base.year + (number if (month - base.month) * number <= 0 else 0)
    return _part(span.month(shifted, month), found_part)


def _whole(base: date, unit: str, number: int) -> Range | None:
    if unit == "week":
        return span.week(base, number)
    if unit == "month":
        return span.month(*span.months_after(base, number))
    if unit == "quarter":
        return span.quarter(base.year, (base.month + 2) // 3 + number)
    return span.year(base.year + number)


def _weekends(base: date, how: str, side: int) -> int:
    # On a Saturday or Sunday "last weekend" is the one before; "this past weekend" on a Monday is the one before too.
    if how in ("this coming", "the coming", "coming"):
        return 0 if base.weekday() < 5 else 1
    return side


def _weekday(base: date, how: str, number: int) -> Range | None:
    if how in ("last", "this past", "previous", "the previous"):
        return span.near(base, number, -1)
    if how == "next":
        return span.weekday(base, 1, number)
    return span.weekday(base, 0, number) if how == "this" else span.near(base, number, 1)


def _repeated(base: date, number: int, when: span.Yearly) -> Range | None:
    if number < 0:
        return span.over(base, when)
    if number > 0:
        return span.to_come(base, when)
    on = span.in_year(base.year - 1, when)
    return on if on and on[1] >= base else span.in_year(base.year, when)


def _beside(found: re.Match[str], base: date, side: Side) -> Range | None:
    """`the week before last`, `the Monday after next`."""
    unit = found["wu"].lower()
    count = -2 if "before" in found["wd"].lower() else 2
    if unit[:3] in DAY_NUMBER:
        return span.weekday(base, count, _weekday_of(unit))
    return span.week(base, count) if unit == "week" else _away(count, unit, base)


def _days_ago(found: re.Match[str], base: date, side: Side) -> Range | None:
    """`two Fridays ago`, `three Mondays from now`."""
    behind = found["gd"].lower() != "from now"
    near = span.near(base, _weekday_of(found["gw"]), -1 if behind else 1)
    more = (_number(found["gn"]) - 1) * 7
    return span.day(near[0], -more if behind else more) if near else None


def _part_of(found: re.Match[str], base: date, side: Side) -> Range | None:
    """`the end of the month`, `the start of the year`, `end of May`, `mid-March`."""
    unit, name, deadline = found["pw"].lower(), found["pp"], found["pby"]
    unit = unit.removeprefix("the ")
    if unit in ("week", "month", "year", "quarter"):
        return _nearest_part(base, unit, name, deadline, side)
    when = (_month_of(unit), 1, _month_of(unit), 31)
    return _part(span.yearly(base, when, side), name, deadline)


def _nearest_part(base: date, unit: str, name: str, deadline: str | None, side: Side) -> Range | None:
    for number in (0, -1) if side < 0 else (0, 1):
        days = _part(_whole(base, unit, number), name, deadline)
        if days and (days[0] <= base if side < 0 else days[1] >= base):
            return days
    return None


def _earlier(found: re.Match[str], base: date, side: Side) -> Range | None:
    return _whole(base, found["ew"].lower(), 0)


def _quarter(found: re.Match[str], base: date, side: Side) -> Range | None:
    said = found["qq"] or found["qq2"]
    number = int(said) if said.isdecimal() else ("first", "second", "third", "fourth").index(said.lower()) + 1
    half = (found["qh"] or found["qh2"]).lower()[0] == "h"
    year = found["qy"]
    if half and number > 2:
        return None
    months: span.Yearly = (number * 6 - 5, 1, number * 6, 30) if half else (number * 3 - 2, 1, number * 3, 31)
    if half and number == 2:
        months = (7, 1, 12, 31)
    if not year:
        return span.yearly(base, months, side)
    return span.in_year(int(year) if year.isdecimal() else base.year + _years(year), months)


def _season(found: re.Match[str], base: date, side: Side) -> Range | None:
    when, year = SEASONS[found["sw"].lower()], found["sy"]
    if not year:
        return span.yearly(base, when, side)
    return span.in_year(int(year) if year.isdecimal() else base.year + _years(year), when)


def _holiday(found: re.Match[str], base: date, side: Side) -> Range | None:
    name, how, said = re.sub(r"[’']", "", found["hw"].lower()), (found["hh"] or "").lower(), found["hy"]
    year = None if not said else int(said) if said.isdecimal() else base.year + _years(said)
    if name.startswith("thanksgiving"):
        days = [_thanksgiving(number) for number in ((year,) if year else range(base.year - 1, base.year + 2))]
        behind = side < 0 or how == "last"
        known = days if year else [day for day in days if (day <= base if behind else day >= base)]
        day = known[-1 if behind else 0] if known else None
        return (day, day) if day else None
    when = HOLIDAYS[name]
    if year:
        return span.in_year(year, when)
    if how:
        return _repeated(base, {"last": -1, "next": 1}.get(how, 0), when)
    return span.yearly(base, when, side)


def _thanksgiving(year: int) -> date:
    first = date(min(max(year, 2), 9998), 11, 1)
    return first + timedelta(days=(3 - first.weekday()) % 7 + 21)


def _weekend(found: re.Match[str], base: date, side: Side) -> Range | None:
    return span.near_weekend(base, side)


def _on(found: re.Match[str], base: date, side: Side) -> Range | None:
    lead = (found["ol"] or "").lower()
    if found["os"] or lead.startswith("every"):
        return None
    # "by Friday" and "until Friday" look ahead, "since Friday" looks back, whatever the verb says
    where: Side = -1 if lead.startswith("since") else 1 if lead.startswith("by") and side >= 0 else side
    return span.near(base, _weekday_of(found["od"]), where)


def _in_month(found: re.Match[str], base: date, side: Side) -> Range | None:
    if found["m4"] == "may" or (found["ip"].lower() in ("of", "for") and not found["ipp"]):
        return None
    lead = found["ip"].lower()
    where: Side = -1 if lead in ("since", "last", "back in") else side
    return _part(span.nearest_year(base, _month_of(found["m4"]), None, where), found["ipp"])


def _in_year(found: re.Match[str], base: date, side: Side) -> Range | None:
    return _part(span.year(int(found["y4"])), found["yp4"])


def _nth(found: re.Match[str], base: date, side: Side) -> Range | None:
    number, month = int(found["d5"]), (found["dm"] or "").lower()
    if not month:
        return span.nth(base, number, side)
    away = -1 if "last" in month or "previous" in month else 1 if "next" in month or "coming" in month else 0
    return span.exact(*span.months_after(base, away), number)


_KINDS: dict[str, Callable[[re.Match[str], date, Side], Range | None]] = {
    "iso": _iso,
    "mdy": _mdy,
    "dmy": _dmy,
    "my": _my,
    "slash": _slash,
    "named": _named,
    "half": _half_ago,
    "from": _from,
    "ago": _ago,
    "in": _in,
    "ofweek": _of_week,
    "rel": _rel,
    "wb": _beside,
    "gago": _days_ago,
    "part": _part_of,
    "early": _earlier,
    "quarter": _quarter,
    "season": _season,
    "holiday": _holiday,
    "nth": _nth,
    "wend": _weekend,
    "on": _on,
    "im": _in_month,
    "iy": _in_year,
}
