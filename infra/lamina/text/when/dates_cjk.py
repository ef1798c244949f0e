"""Time phrases of Korean, Chinese and Japanese, resolved against the day they were said.

The three build them alike: an anchor (a year, a month, a week, a day, a number of them before or after) and behind it
a part of that (`next year` `spring`, `March` `3rd`, `last week` `Friday`). One reader serves all; a language is a
table of words (`dates_ko`, `dates_zh`, `dates_ja`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Literal, TypeAlias

from lamina.text.language import Language
from lamina.text.when import spans_of_time as span
from lamina.text.when.dates_ja import JA
from lamina.text.when.dates_ko import KO
from lamina.text.when.dates_words import T, Words, number, plain
from lamina.text.when.dates_zh import ZH
from lamina.text.when.spans_of_time import Range, Side, When

Grain: TypeAlias = Literal["year", "month", "week", "day"]
Found: TypeAlias = tuple[Range | None, Grain]
_WORDS: Mapping[Language, Words] = {"ko": KO, "zh": ZH, "ja": JA}


def _any(words: Mapping[str, object]) -> str:
    return "|".join(key.replace(" ", " ?") for key in sorted(words, key=len, reverse=True))


def _anchor(w: Words) -> re.Pattern[str]:
    kinds = {
        "iso": r"(?<!\d)(?P<iy>(?:19|20)\d\d)(?P<sep>[-./])(?P<im>\d{1,2})(?P=sep)(?P<id>\d{1,2})(?!\d)",
        "full": rf"(?<![\d.])(?:{w.full_year})",
        "fiscal": rf"(?P<fy>{_any(w.years)}|(?:19|20)\d\d{w.year})(?:{w.fiscal})" if w.fiscal else "(?!)",
        "year": f"(?P<yw>{_any(w.years)})",
        "month": f"(?P<mw>{_any(w.months)})",
        "week": f"(?P<ww>{_any(w.weeks)})",
        "quarter": f"(?P<qw>{_any(w.quarters)})",
        "span": rf"(?P<sw>{_any(w.spans)})(?:(?P<sb>{w.before})|{w.after})",
        "passed": rf"(?:{w.passing})(?P<pn>{w.number}) ?(?P<pu>{_any(w.units)})(?!{w.before})"
        if w.passing
        else "(?!)",
        "away": rf"(?:{w.amount} ?(?P<au>{_any(w.units)})(?P<half>{w.half})?)(?:(?P<ab>{w.before})|{w.after})",
        "near": rf"(?P<nw>{_any(w.near)})(?:(?P<nd>{_any(w.bare_weekdays)})|(?P<ne>{w.weekend})|(?P<ny>{_any(w.yearly)})"
        rf"|(?P<nm>\d{{1,2}}){w.month}(?:{w.of}(?P<nmd>\d{{1,2}}){w.day})?|(?P<nn>\d{{1,2}}){w.day})",
        "md": rf"(?<![\d.:/]){w.month_number}",
        "slash": rf"(?<![\d./:-])(?P<sm>1[0-2]|0?[1-9])/(?P<sd>3[01]|[12]\d|0?[1-9])(?:{w.slash})",
        "nth": rf"(?<![\d.:/-]){w.nth}",
        "bare": f"(?:{w.bare_before})(?P<bw>{_any(w.bare)})",
        "day": f"(?:{w.word_before})(?P<dw>{_any(w.days)})(?:{w.word_after})",
        "wday": rf"(?:{w.weekday_before})(?P<vw>{_any(w.bare_weekdays)})(?:{w.weekday_after})(?:{w.weekday_alone})",
        "wend": rf"(?:{w.bare_weekend})",
        "yearly": rf"(?:(?P<rw>{_any(w.yearly)})(?:{w.season_after})|(?P<hw>{_any(w.holidays)})(?:{w.holiday_after}))",
    }
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items()))


def _parts(w: Words) -> dict[Grain, re.Pattern[str]]:
    of, num = w.of, w.calendar_number
    return {
        "year": re.compile(
            rf"{of}(?:(?P<m>{num}){w.month}|(?P<y>{_any({**w.yearly, **w.holidays})})|(?P<q>{w.quarter})|(?P<p>{_any(w.year_parts)}))"
        ),
        "month": re.compile(rf"{of}(?:(?P<d>{num}){w.day}|(?P<p>{_any(w.month_parts)}))"),
        "week": re.compile(
            rf"{of}(?:(?P<w>{_any(w.weekdays)})(?:{w.weekday_after})|(?P<e>{w.weekend})|(?P<p>{_any(w.week_parts)}))"
        ),
    }


_ANCHORS = {name: _anchor(words) for name, words in _WORDS.items()}
_PARTS = {name: _parts(words) for name, words in _WORDS.items()}
_HINT = {name: re.compile(words.hint) for name, words in _WORDS.items()}
_SINCE = {name: re.compile(words.since) for name, words in _WORDS.items()}
_DEADLINE = {name: re.compile(words.deadline) for name, words in _WORDS.items()}
_EVERY = {
    name: (re.compile(f"(?:{words.every_before})$"), re.compile(words.every_after)) for name, words in _WORDS.items()
}
_MAX_EVERY_CHARS = 6


def find(text: str, language: Language, base: date, told: Callable[[int], Side]) -> Iterator[When]:
    """The time phrases of a sentence, ages, durations and habits left out.

    `told` tells on which side of `base` a day lies that is named alone, of the character where it is named.
    """
    if not _HINT[language].search(text):
        return
    words, parts = _WORDS[language], _PARTS[language]
    before, after = _EVERY[language]
    at = 0
    while (found := _ANCHORS[language].search(text, at)) is not None:
        at = max(found.end(), found.start() + 1)
        kind = str(found.lastgroup)
        days, grain = _KINDS[kind](found, words, base, told(found.start()))
        end = found.end()
        while days is not None and grain != "day" and (piece := parts[grain].match(text, end)) is not None:
            deadline = _DEADLINE[language].match(text, piece.end()) is not None
            days, grain = _narrowed(piece, words, days, deadline=deadline)
            end = piece.end()
        if kind == "bare" and days is not None and _DEADLINE[language].match(text, end):
            days = (days[1], days[1])
        at = max(at, end)
        habit = before.search(text, max(0, found.start() - _MAX_EVERY_CHARS), found.start()) or after.match(text, end)
        if days is not None and not habit:
            open_ = _SINCE[language].match(text, end) is not None
            yield When(found.start(), end, *days, absolute=kind in ("iso", "full"), open=open_)


def _narrowed(piece: re.Match[str], w: Words, days: Range, *, deadline: bool) -> Found:
    groups = piece.groupdict()
    year = days[0].year
    if groups.get("m"):
        return span.month(year, number(groups["m"])), "month"
    if groups.get("d"):
        return span.exact(year, days[0].month, number(groups["d"])), "day"
    if groups.get("y"):
        return span.in_year(year, _lookup({**w.yearly, **w.holidays}, groups["y"])), "day"
    if groups.get("q"):
        return span.quarter(year, _quarter(groups["q"])), "day"
    if groups.get("w"):
        return span.day(days[0], _lookup(w.weekdays, groups["w"])), "day"
    if groups.get("e"):
        return span.weekend(days[0], 0), "day"
    parts = {**w.year_parts, **w.month_parts, **w.week_parts}
    if (days[1] - days[0]).days > 31:
        parts = dict(w.year_parts)
    found = span.part(days, _lookup(parts, groups["p"]))
    if found and deadline:
        found = (found[1], found[1])
    return found, "day"


def _lookup(words: Mapping[str, T], said: str) -> T:
    """The value of a word, whatever blanks stand in it."""
    return plain(words)[said.replace(" ", "")]


def _quarter(said: str) -> int:
    return number(re.sub(r"[^\d一二三四]", "", said))


def _iso(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.exact(int(found["iy"]), int(found["im"]), int(found["id"])), "day"


def _full(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.year(w.year_of(found["full"])), "year"


def _fiscal(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    said = found["fy"]
    # The fiscal year that is on began in April; in January "last year" of accounts is still the one before it.
    began = base.year if base.month >= 4 else base.year - 1
    year = int(said[:4]) if said[:4].isdecimal() else began + _lookup(w.years, said)
    return span.in_year(year, (4, 1, 3, 31)), "day"


def _year(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.year(base.year + _lookup(w.years, found["yw"])), "year"


def _month(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.month(*span.months_after(base, _lookup(w.months, found["mw"]))), "month"


def _week(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.week(base, _lookup(w.weeks, found["ww"])), "week"


def _of_quarter(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.quarter(base.year, (base.month + 2) // 3 + _lookup(w.quarters, found["qw"])), "day"


def _span(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    count, unit = _lookup(w.spans, found["sw"])
    return span.ago(base, -count if found["sb"] else count, unit), "day"


def _passed(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.ago(base, number(found["pn"]), _lookup(w.units, found["pu"])), "day"


def _away(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    said = next(value for key, value in found.groupdict().items() if key.startswith("an") and value)
    count, unit = number(said), _lookup(w.units, found["au"])
    if unit == "hm" or (found["half"] and unit in ("m", "y")):
        count, unit = (count * 12 + 6, "m") if unit == "y" else (count * 30 + 15, "d")
    return (span.ago(base, -count if found["ab"] else count, unit) if count else None), "day"


def _near(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    """`last Friday`, `this summer`, `next 15th`: the word says on which side."""
    where, weeks = _lookup(w.near, found["nw"])
    if found["nd"]:
        day = _lookup(w.weekdays, found["nd"])
        near = span.near(base, day, where) if where < 0 or not weeks else None
        return near or span.weekday(base, where, day), "day"
    if found["ne"]:
        return (span.near_weekend(base, -1) if where < 0 else span.weekend(base, where)), "day"
    if found["nn"]:
        return span.nth(base, int(found["nn"]), where or side), "day"
    if found["ny"]:
        return _of_side(base, _lookup(w.yearly, found["ny"]), where), "day"
    month, day_ = int(found["nm"]), int(found["nmd"] or 0)
    if not 1 <= month <= 12:
        return None, "day"
    return _of_side(base, (month, day_ or 1, month, day_ or 31), where), "day"


def _of_side(base: date, when: span.Yearly, where: Side) -> Range | None:
    if where == 0:
        on = span.in_year(base.year - 1, when)
        return on if on and on[1] >= base else span.in_year(base.year, when)
    return span.over(base, when) if where < 0 else span.to_come(base, when)


def _month_day(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    month = number(found["mn"])
    day_ = number(found["mdn"]) if found["mdn"] else None
    days = span.nearest_year(base, month, day_, side)
    return days, "day" if day_ else "month"


def _slash(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.nearest_year(base, int(found["sm"]), int(found["sd"]), side), "day"


def _nth(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.nth(base, number(found["dn"]), side), "day"


def _bare(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    """`the end of the month`, `the beginning of the year`: of the one that is on, or the nearest on its side."""
    unit, part = _lookup(w.bare, found["bw"])
    if unit in ("week", "next week"):
        week = span.week(base, int(unit == "next week"))
        return (span.part(week, part) if week else None), "day"
    if unit == "month":
        for away in (0, -1) if side < 0 else (0, 1):
            month = span.month(*span.months_after(base, away))
            days = span.part(month, part) if month else None
            if days and (days[0] <= base if side < 0 else days[1] >= base):
                return days, "day"
        return None, "day"
    for away in (0, -1) if side < 0 else (0, 1):
        year = span.year(base.year + away)
        days = span.part(year, part) if year else None
        if days and (days[0] <= base if side < 0 else days[1] >= base):
            return days, "day"
    return None, "day"


def _day(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.day(base, _lookup(w.days, found["dw"])), "day"


def _weekday(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.near(base, _lookup(w.bare_weekdays, found["vw"]), side), "day"


def _weekend(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    return span.near_weekend(base, side), "day"


def _yearly(found: re.Match[str], w: Words, base: date, side: Side) -> Found:
    said = found["rw"] or found["hw"]
    return span.yearly(base, _lookup({**w.yearly, **w.holidays}, said), side), "day"


_KINDS: dict[str, Callable[[re.Match[str], Words, date, Side], Found]] = {
    "iso": _iso,
    "full": _full,
    "fiscal": _fiscal,
    "year": _year,
    "month": _month,
    "week": _week,
    "quarter": _of_quarter,
    "span": _span,
    "passed": _passed,
    "away": _away,
    "near": _near,
    "md": _month_day,
    "slash": _slash,
    "nth": _nth,
    "bare": _bare,
    "day": _day,
    "wday": _weekday,
    "wend": _weekend,
    "yearly": _yearly,
}
