"""Time phrases of English, resolved against the day they were said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from lamina.atoms.builtin import spans_of_time as span
from lamina.atoms.builtin.spans_of_time import Range, When

_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_DAY_NUMBER = {name[:3]: number for number, name in enumerate(_DAYS)}
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH_NUMBER = {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
_NUMBERS = {
    name: number
    for number, names in enumerate(
        (
            "",
            "a an one",
            "two couple",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        )
    )
    for name in names.split()
}
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
_LONG_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_ORD = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_COUNT = r"(?:a couple(?: of)?|a|an|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,4})"
_UNIT = r"(?:day|week|weekend|month|year|night)"

_PHRASE = re.compile(
    "|".join(
        (
            r"\b(?P<iso>\d{4}-\d\d-\d\d)(?!\d)",
            rf"\b(?P<mdy>(?P<m1>{_MONTH})\.? {_ORD.format('d1')}(?:,? (?P<y1>\d{{4}}))?)\b(?![:\d])",
            rf"\b(?P<dmy>{_ORD.format('d2')} (?:of )?(?P<m2>{_MONTH})(?:,? (?P<y2>\d{{4}}))?)\b",
            rf"\b(?P<my>(?P<m3>{_MONTH}),? (?:of )?(?P<y3>\d{{4}}))\b",
            r"(?<![\d/.-])(?P<slash>(?P<s1>\d{1,2})/(?P<s2>\d{1,2})/(?P<s3>\d{4}))(?![\d/])",
            r"\b(?P<named>(?:the )?day before yesterday|(?:the )?day after tomorrow|yesterday|today|tonight|tomorrow|"
            r"last night|this (?:morning|afternoon|evening)|the other day)\b",
            rf"\b(?P<ago>(?P<n1>{_COUNT}) (?P<u1>{_UNIT})s? (?:ago|earlier|back))\b",
            rf"\b(?P<in>in (?P<n2>{_COUNT}) (?P<u2>{_UNIT})s?(?:'s? time)?|"
            rf"(?P<n3>{_COUNT}) (?P<u3>{_UNIT})s? from now)\b",
            rf"\b(?P<rel>(?P<r>last|this past|this|next|this coming|the coming|coming|past) "
            rf"(?P<w>weekend|week|month|year|spring|summer|fall|autumn|winter|{_DAY}|{_MONTH}))\b(?!')",
            rf"\b(?P<wb>the (?P<wu>{_LONG_DAY}|weekend|week|month|year|day) "
            rf"(?P<wd>before last|after next|before|after))\b",
            r"\b(?:on|by|until|till|before|since|around) (?P<nth>the (?P<d5>\d{1,2})(?:st|nd|rd|th))\b(?! of\b)",
            rf"\b(?P<on>(?:on |by |until |till |before |after |since |every )?(?P<od>{_LONG_DAY})s?)\b",
            rf"\b(?P<im>(?P<ip>in|since|by|until|during|of|for|from|last) "
            rf"(?:early |mid-?|late )?(?P<m4>{_MONTH}))\b(?! \d)",
            r"\b(?P<iy>(?P<yp>in|since|back in|until|by|from|of|during) (?P<y4>(?:19|20)\d\d))\b(?![-/.:]\d)",
        )
    ),
    re.IGNORECASE,
)
_HINT = re.compile(
    r"\d|day|night|week|month|year|morrow|last|next|this|coming|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|ago",
    re.IGNORECASE,
)
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "fall": (9, 11), "autumn": (9, 11), "winter": (12, 2)}
_NAMED = {"yesterday": -1, "last night": -1, "tomorrow": 1}


def find(text: str, base: date, past: bool) -> Iterator[When]:
    """The time phrases of an English sentence; `past` tells on which side a bare weekday or month lies."""
    if not _HINT.search(text):
        return
    for found in _PHRASE.finditer(text):
        kind = next(name for name in _KINDS if found.group(name) is not None)
        days = _KINDS[kind](found, base, past)
        if days is not None:
            since = kind in ("im", "iy", "on") and found.group().lower().startswith("since")
            yield When(found.start(), found.end(), *days, absolute=_absolute(kind, found), open=since)


def _absolute(kind: str, found: re.Match[str]) -> bool:
    year = {"iso": "iso", "slash": "slash", "mdy": "y1", "dmy": "y2", "my": "y3", "iy": "y4"}.get(kind)
    return year is not None and found.group(year) is not None


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS.get(word.split()[0] if "couple" not in word else "couple", 1)


def _iso(found: re.Match[str], base: date, past: bool) -> Range | None:
    return span.exact(*(int(part) for part in found["iso"].split("-")))


def _month_day(month: str, day: str, year: str | None, base: date, past: bool) -> Range | None:
    number = _MONTH_NUMBER[month[:3].lower()]
    if year:
        return span.exact(int(year), number, int(day))
    return span.nearest_year(base, number, int(day), past)


def _mdy(found: re.Match[str], base: date, past: bool) -> Range | None:
    return _month_day(found["m1"], found["d1"], found["y1"], base, past)


def _dmy(found: re.Match[str], base: date, past: bool) -> Range | None:
    return _month_day(found["m2"], found["d2"], found["y2"], base, past)


def _my(found: re.Match[str], base: date, past: bool) -> Range | None:
    return span.month(int(found["y3"]), _MONTH_NUMBER[found["m3"][:3].lower()])


def _slash(found: re.Match[str], base: date, past: bool) -> Range | None:
    first, second, year = int(found["s1"]), int(found["s2"]), int(found["s3"])
    if first > 12:  # only then is the order certain to be day first; otherwise the American one is meant more often
        first, second = second, first
    return span.exact(year, first, second)


def _named(found: re.Match[str], base: date, past: bool) -> Range | None:
    said = found["named"].lower()
    if said == "the other day":
        return None
    if "before yesterday" in said:
        return span.day(base, -2)
    if "after tomorrow" in said:
        return span.day(base, 2)
    return span.day(base, _NAMED.get(said, 0))


def _away(number: int, unit: str, base: date) -> Range | None:
    if unit == "weekend":
        return span.weekend(base, number)
    return span.ago(base, number, {"night": "d"}.get(unit, unit[0]))


def _ago(found: re.Match[str], base: date, past: bool) -> Range | None:
    return _away(-_number(found["n1"].lower()), found["u1"].lower(), base)


def _in(found: re.Match[str], base: date, past: bool) -> Range | None:
    count, unit = (found["n2"], found["u2"]) if found["n2"] else (found["n3"], found["u3"])
    if past and found["n2"]:
        return None  # "I read it in two days" is how long, not when
    return _away(_number(count.lower()), unit.lower(), base)


def _rel(found: re.Match[str], base: date, past: bool) -> Range | None:
    how, what = found["r"].lower(), found["w"].lower()
    side = -1 if how in ("last", "this past", "past") else 0 if how == "this" else 1
    if how == "past":
        return None  # "the past week" is how long
    if what == "weekend":
        return span.weekend(base, _weekends(base, how, side))
    if what == "week":
        return span.week(base, side)
    if what == "month":
        return span.month(*span.months_after(base, side))
    if what == "year":
        return span.year(base.year + side)
    if what in _SEASONS:
        return _season(base, side, what, past)
    if what[:3] in _DAY_NUMBER and not (what[:3] == "mar" or what == "may"):
        return _weekday(base, how, _DAY_NUMBER[what[:3]])
    number = _MONTH_NUMBER[what[:3]]
    if side == 0:
        return span.month(base.year, number)
    shifted = base.year + (side if (number - base.month) * side <= 0 else 0)
    return span.month(shifted, number)


def _weekends(base: date, how: str, side: int) -> int:
    # On a Saturday or Sunday "last weekend" is the one before; "this past weekend" on a Monday is the one before too.
    if how in ("this coming", "the coming", "coming"):
        return 0 if base.weekday() < 5 else 1
    return side


def _weekday(base: date, how: str, number: int) -> Range | None:
    if how in ("last", "this past"):
        return span.near(base, number, past=True)
    if how == "next":
        return span.weekday(base, 1, number)
    return span.weekday(base, 0, number) if how == "this" else span.near(base, number, past=False)


def _season(base: date, side: int, what: str, past: bool) -> Range | None:
    first, last = _SEASONS[what]
    for year in (base.year - 1, base.year, base.year + 1):
        begin, end = span.month(year, first), span.month(year + (last < first), last)
        if begin is None or end is None:
            continue
        if side < 0 and end[1] < base and (base - end[1]).days < 366:
            latest = (begin[0], end[1])
            following = span.month(year + 1 + (last < first), last)
            if following is None or following[1] >= base:
                return latest
        if side == 0 and year == base.year:
            return begin[0], end[1]
        if side > 0 and begin[0] > base:
            return begin[0], end[1]
    return None


def _beside(found: re.Match[str], base: date, past: bool) -> Range | None:
    unit, how = found["wu"].lower(), found["wd"].lower()
    if how not in ("before last", "after next"):
        return None  # beside another event, not beside today
    side = -2 if how == "before last" else 2
    if unit.endswith("day") and unit != "day":
        return span.weekday(base, side, _DAY_NUMBER[unit[:3]])
    if unit == "week":
        return span.week(base, side)
    return _away(side, unit, base)


def _on(found: re.Match[str], base: date, past: bool) -> Range | None:
    if found["on"].lower().startswith("every") or found["on"].lower().endswith("s"):
        return None
    return span.near(base, _DAY_NUMBER[found["od"][:3].lower()], past)


def _in_month(found: re.Match[str], base: date, past: bool) -> Range | None:
    if found["m4"].lower() == "may" and found["m4"][0] == "m":
        return None
    if found["ip"].lower() in ("of", "for"):
        return None
    return span.nearest_year(base, _MONTH_NUMBER[found["m4"][:3].lower()], None, past)


def _in_year(found: re.Match[str], base: date, past: bool) -> Range | None:
    return span.year(int(found["y4"]))


def _nth(found: re.Match[str], base: date, past: bool) -> Range | None:
    number = int(found["d5"])
    months = (0, -1) if past else (0, 1)
    for months_away in months:
        day = span.exact(*span.months_after(base, months_away), number)
        if day and (day[0] <= base if past else day[0] >= base):
            return day
    return None


_KINDS = {
    "iso": _iso,
    "mdy": _mdy,
    "dmy": _dmy,
    "my": _my,
    "slash": _slash,
    "named": _named,
    "ago": _ago,
    "in": _in,
    "rel": _rel,
    "wb": _beside,
    "nth": _nth,
    "on": _on,
    "im": _in_month,
    "iy": _in_year,
}
