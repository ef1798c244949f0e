"""The time that a question is about: its phrases as spans, and how close to them a turn was said. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina import text
from lamina.text import when
from lamina.text.language import Language, language
from lamina.times import micros

TIME = 0.3
"""What a turn of the time asked for gains, of the best score of the question."""
BESIDE = 0.5
"""Of that, what a turn gains that was said right beside the time asked for: what happened is told soon afterwards."""
SOON_DAYS = 2
MAX_CHARS = 2_000
"""So much of a question is searched for phrases of time: who asks with a page means the page."""
_DAY_US = 86_400_000_000
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?。！？\n](?=\d)[^.!?。！？\n]*)*[.!?。！？\n]?")
_UNITS = (
    (("day", "일", "天", "日", "日間", "日间"), 1),
    (("week", "주", "周", "星期", "週", "週間"), 7),
    (("month", "月", "개월", "달", "个月", "個月", "か月", "ヶ月", "カ月"), 30),
    (("year", "년", "年"), 365),
)
_NUMBERS = {
    **{
        "couple of": 2,
        "few": 3,
        "several": 5,
        "two": 2,
        "three": 3,
        "four": 4,
        "five": 5,
        "six": 6,
        "seven": 7,
        "ten": 10,
    },
    **{
        "一": 1,
        "两": 2,
        "二": 2,
        "三": 3,
        "四": 4,
        "五": 5,
        "六": 6,
        "七": 7,
        "十": 10,
        "几": 3,
        "한": 1,
        "두": 2,
        "세": 3,
        "몇": 3,
    },
}
_COUNT = r"\d{1,3}|couple of|few|several|two|three|four|five|six|seven|ten"
_LATELY = re.compile(
    rf"\b(?:in|over|during|within|for|from) the (?:past|last) (?:({_COUNT}) )?(day|week|month|year)s?\b"
    rf"|\bthe (?:past|last) ({_COUNT}) (day|week|month|year)s?\b"
    r"|(?:최근|지난) ?(\d{1,3}|한|두|세|몇) ?(일|주|개월|달|년)(?: ?(?:간|동안|사이))"
    r"|(?:最近|近|过去|過去)的?(\d{1,3}|[一两二三四五六七十几])(?:个)?(天|日|周|星期|个月|個月|月|年)(?![前后後])"
    r"|(?:ここ|過去|この|最近)(\d{1,3}|[一二三四五六七十])(日間|日|週間|か月|ヶ月|カ月|年)(?:間)?(?!前|後)",
    re.IGNORECASE,
)
MAX_DAYS = 3_700
_ASKS = "?？"


class Span(Struct, frozen=True):
    """From `first_us` until before `end_us`."""

    first_us: int
    end_us: int

    def closeness(self, time_us: int) -> float:
        """1 within; at its borders half of that, less and less until nothing: after it when as long again and two
        days have gone; before it, of several days (where a week begins is seldom meant so exactly), at half its
        length."""
        long = self.end_us - self.first_us
        if self.first_us <= time_us < self.end_us:
            return 1.0
        early = (self.first_us - time_us) / (long / 2) if long > _DAY_US else 1.0
        late = (time_us - self.end_us) / (long + SOON_DAYS * _DAY_US)
        return BESIDE * (1.0 - (late if late >= 0.0 else min(1.0, early))) if late < 1.0 else 0.0


class Asked(Struct, frozen=True):
    """A question: its words, without those that say a time relative to now, and the spans of its times."""

    words: str
    spans: tuple[Span, ...] = ()

    def closeness(self, time_us: int) -> float:
        """How close a time is to the nearest span, 0 to 1."""
        return max((span.closeness(time_us) for span in self.spans), default=0.0)


def asked(query: str, now: datetime) -> Asked:
    """Read the phrases of time in `query`, as they are meant at `now`, in its time zone.

    What lies ahead of `now` is no time at which anything was said, and is left to the words. "Last week" is no word
    to look for; "May 2023" is one too, for a turn may name it.
    """
    said = query[:MAX_CHARS]
    lately = [one for start, end in _asking(said) for one in _lately(said, start, end, now.date())]
    found = lately or [one for start, end in _asking(said) for one in _phrases(said, start, end, now.date())]
    behind = [one for one in found if one.first <= now.date()]
    spans = tuple(dict.fromkeys(Span(_start(one.first, now), _start(one.last, now) + _DAY_US) for one in behind))
    words = said
    for one in reversed(behind):
        if not one.absolute:
            words = f"{words[: one.start]} {words[one.end :]}"
    return Asked(words + query[MAX_CHARS:] if behind else query, spans)


def in_time(
    ranked: Sequence[text.Ranked], closeness: Mapping[int, float], seconds: Iterable[int] = ()
) -> list[text.Ranked]:
    """The ranking with what closeness to the time asked for adds (`time`), best first, ties by turn number.

    `seconds` are turns that nothing else speaks for. Without any closeness the ranking is as it was.
    """
    if not any(closeness.values()):
        return list(ranked)
    best = max((one.score for one in ranked), default=0.0) or 1.0
    known = {one.turn for one in ranked}
    every = [*ranked, *(text.Ranked(turn, 0.0, {}) for turn in seconds if turn not in known)]
    timed = []
    for one in every:
        parts = {**one.parts, "time": TIME * best * closeness.get(one.turn, 0.0)}
        timed.append(text.Ranked(one.turn, sum(parts.values()), parts))
    return sorted((one for one in timed if one.score > 0), key=lambda one: (-one.score, one.turn))


def sentences(said: str) -> list[tuple[int, int]]:
    """Where the sentences of a text begin and end."""
    return [found.span() for found in _SENTENCE.finditer(said) if found.group().strip()]


def _asking(said: str) -> list[tuple[int, int]]:
    """Where the sentences are that ask; all of them where none does: what is told beside a question is not asked."""
    every = sentences(said)
    return [one for one in every if said[one[1] - 1] in _ASKS] or every


def _phrases(said: str, start: int, end: int, today: date) -> list[when.When]:
    """Those of the sentence's own language; in one of another language also the English ones and plain dates."""
    sentence = said[start:end]
    own = language(sentence, said)
    tongues: tuple[Language, ...] = (own,) if own == "en" else (own, "en")
    found: list[when.When] = []
    for tongue in tongues:
        for one in when.find(sentence, tongue, today):
            if all(one.end <= other.start or other.end <= one.start for other in found):
                found.append(one)
    return [replace(one, start=start + one.start, end=start + one.end) for one in sorted(found, key=_by_start)]


def _lately(said: str, start: int, end: int, today: date) -> list[when.When]:
    """ "In the past week", "over the last three days": so many days up to today, which the phrases of what somebody
    tells are not (there they say how long something took)."""
    found = []
    for one in _LATELY.finditer(said, start, end):
        number, unit = next((n or "1", u) for n, u in zip(one.groups()[::2], one.groups()[1::2], strict=True) if u)
        count = _NUMBERS.get(number.lower(), 0) or (int(number) if number.isdecimal() else 0)
        days = count * next(length for units, length in _UNITS if unit.lower() in units)
        if 0 < days <= MAX_DAYS:
            found.append(when.When(one.start(), one.end(), today - timedelta(days=days), today))
    return found


def _by_start(one: when.When) -> int:
    return one.start


def _start(day: date, now: datetime) -> int:
    return micros(datetime.combine(min(day, date.max - timedelta(days=2)), time(), now.tzinfo))
