"""When a statement says that something was, is or will be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from functools import partial

from msgspec.structs import replace

from lamina.text.language import Language
from lamina.text.when import dates_cjk, dates_en
from lamina.text.when.spans_of_time import When, month
from lamina.text.when.tense import MOVED, side

MAX_PHRASES = 8
_LONGEST_DAYS = 3_700
_ASCII_DIGITS = {0xFF10 + digit: str(digit) for digit in range(10)} | {0xFF0F: "/"}
_JOINED: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(r",?\s{0,2}(?:to|through|thru|until|till|-|–|—|and)\s{0,2}(?:the\s)?"),
    "ko": re.compile(r"(?:부터|에서|\s?[~∼〜-]\s?)\s{0,2}"),
    "zh": re.compile(r"\s?(?:到|至|[~～—-])\s?"),
    "ja": re.compile(r"(?:から|\s?[~～〜-]\s?)、?\s?"),
}
_YEARLESS = re.compile(
    r"\d ?(?:월|月|일|日|号|號)|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b", re.IGNORECASE
)
_LAST_DAY: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(r"(\d{1,2})(?:st|nd|rd|th)?\b(?![:.]?\d| ?(?:am|pm|%))"),
    "ko": re.compile(r"(\d{1,2}) ?일"),
    "zh": re.compile(r"(\d{1,2}) ?[日号號]"),
    "ja": re.compile(r"(\d{1,2}) ?日(?!間)"),
}
# Of two days the new one counts: what was put off, and what was settled one day about another.
_SETTLED: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        rf"\b(?:{MOVED}|(?:postponed|rescheduled|delayed|deferred|agreed|decided|confirmed|announced|told|booked|scheduled|originally)\b)",
        re.IGNORECASE,
    ),
    "ko": re.compile(
        r"미뤄|미뤘|연기|변경|옮겼|옮겨|옮기|바뀌|바꿨|바꾸|당겨|당겼|앞당|늦춰|잡았|잡혔|예약|기로|확정|정했|대신|원래"
    ),
    "zh": re.compile(
        r"改[到在为成至期]|推迟|推遲|延[到期后]|提前|调到|挪到|换到|定在|定于|预约|約|约|决定|通知|原定|原来|本来"
    ),
    "ja": re.compile(
        r"変更|延期|延び|ずれ|ずら|前倒|移動|になりました|になった|決ま|決め|予約|ことにし|もともと|当初|元々"
    ),
}


def find(text: str, language: Language, base: date) -> tuple[When, ...]:
    """The time phrases of the sentence `text`, said on the day `base`, in order and at most `MAX_PHRASES`.

    The tense of the words around it says on which side of `base` a weekday, a day or a month lies that is named alone.
    """
    said = text.translate(_ASCII_DIGITS)
    told = partial(side, said, language)
    found = dates_en.find(said, base, told) if language == "en" else dates_cjk.find(said, language, base, told)
    return tuple(_spans(said, language, (when for _, when in zip(range(MAX_PHRASES), found, strict=False))))


def validity(text: str, language: Language, phrases: tuple[When, ...]) -> tuple[str, str]:
    """The first and last day that a statement is about; the last is empty where it is one day, or goes on."""
    if not phrases:
        return "", ""
    chosen = phrases[0]
    if len(phrases) > 1 and is_settled(text, language):
        chosen = (
            max(phrases[1:], key=lambda when: when.first) if phrases[0].first < phrases[-1].first else phrases[-1]
        )
    last = "" if chosen.open or chosen.first == chosen.last else chosen.last.isoformat()
    return chosen.first.isoformat(), last


def is_settled(text: str, language: Language) -> bool:
    """Whether one of its days was settled on the other, or put in its place."""
    return _SETTLED[language].search(text) is not None


def resolved(text: str, phrases: tuple[When, ...]) -> str:
    """`text` with the days that its relative phrases mean in brackets behind them."""
    parts: list[str] = []
    at = 0
    for when in phrases:
        if not when.absolute:
            parts += [text[at : when.end], f" ({when.text()})"]
            at = when.end
    return "".join([*parts, text[at:]])


def _spans(text: str, language: Language, phrases: Iterable[When]) -> Iterable[When]:
    """Two days that a `from ... to ...` joins are one span; the second may be a bare number."""
    held: When | None = None
    for when in phrases:
        joined = held and _JOINED[language].fullmatch(text, held.end, when.start)
        if held and joined:
            held, when = _of_one_year(text, held, when)
        last = _end_of_span(held, when) if held and joined and not is_settled(text, language) else None
        if held and last is not None:
            held = replace(held, end=when.end, last=last, open=False, absolute=held.absolute and when.absolute)
            continue
        if held:
            yield _to_number(text, language, held)
        held = when
    if held:
        yield _to_number(text, language, held)


def _of_one_year(text: str, first: When, second: When) -> tuple[When, When]:
    """Of two joined days or months of which one has its year ("March to May 2024", "2024年3月到5月") the other is of
    that year, or of the one beside it that keeps their order."""
    if first.absolute and not second.absolute and _YEARLESS.search(text, second.start, second.end):
        second = _in_year(second, first.first.year)
        if second.last < first.first:
            second = _in_year(second, first.first.year + 1)
    elif second.absolute and not first.absolute and _YEARLESS.search(text, first.start, first.end):
        first = _in_year(first, second.first.year)
        if first.first > second.last:
            first = _in_year(first, second.first.year - 1)
    return first, second


def _in_year(when: When, year: int) -> When:
    days = (when.last - when.first).days
    try:
        first = when.first.replace(year=year)
    except ValueError:  # 29 February, or no year of the calendar
        return when
    last = month(year, first.month) if days in (27, 28, 29, 30) and first.day == 1 else None
    return replace(when, first=first, last=last[1] if last else first + timedelta(days=days), absolute=True)


def _end_of_span(first: When, second: When) -> date | None:
    """The last day of a span; a weekday behind another one is that of the days after it. None where there is none."""
    if first.last <= second.first:
        return second.last if (second.first - first.last).days < _LONGEST_DAYS else None
    weeks = (first.last - second.first).days // 7 + 1
    if second.first != second.last or weeks > 2:
        return None
    return second.last + timedelta(days=7 * weeks)


def _to_number(text: str, language: Language, when: When) -> When:
    if when.first != when.last:
        return when
    joined = _JOINED[language].match(text, when.end)
    number = (
        joined and not joined.group().strip(" ,").startswith("and") and _LAST_DAY[language].match(text, joined.end())
    )
    if not number or not when.first.day < int(number[1]) <= 28 + 3:
        return when
    try:
        last = when.first.replace(day=int(number[1]))
    except ValueError:
        return when
    return replace(when, end=number.end(), last=last, open=False)
