"""What a language's table of time words holds (Korean, Chinese, Japanese), and how their numbers are read.

Keys of mappings are words; a blank in a key may be left out in the text. Strings are regular expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

from lamina.text.when.spans_of_time import Part, Side, Yearly

T = TypeVar("T")
Bare: TypeAlias = Literal["week", "next week", "month", "year"]

SEASONS: Mapping[str, Yearly] = {
    "spring": (3, 1, 5, 31),
    "summer": (6, 1, 8, 31),
    "autumn": (9, 1, 11, 30),
    "winter": (12, 1, 2, 29),
}


class Words(Struct, frozen=True, kw_only=True):
    """The time words of one language: each maps to how many days, weeks, months, quarters or years it is away."""

    hint: str
    days: Mapping[str, int]
    weeks: Mapping[str, int]
    months: Mapping[str, int]
    quarters: Mapping[str, int]
    years: Mapping[str, int]
    near: Mapping[str, tuple[Side, bool]]
    """On which side the next word lies; whether it counts weeks (`next Friday` is that of next week)."""
    weekdays: Mapping[str, int]
    bare_weekdays: Mapping[str, int]
    yearly: Mapping[str, Yearly]
    holidays: Mapping[str, Yearly]
    bare: Mapping[str, tuple[Bare, Part]]
    year_parts: Mapping[str, Part]
    month_parts: Mapping[str, Part]
    week_parts: Mapping[str, Part]
    spans: Mapping[str, tuple[int, str]]
    units: Mapping[str, str]
    number: str
    amount: str
    """How many of a unit; the groups named `an...` hold the number."""
    calendar_number: str
    month_number: str
    nth: str
    full_year: str
    year_of: Callable[[str], int]
    of: str
    year: str
    month: str
    day: str
    quarter: str
    half: str
    weekend: str
    bare_weekend: str
    before: str
    after: str
    since: str
    deadline: str
    every_before: str
    every_after: str
    slash: str
    word_before: str = ""
    word_after: str = ""
    bare_before: str = ""
    weekday_before: str = ""
    weekday_after: str = ""
    weekday_alone: str = ""
    season_after: str = ""
    holiday_after: str = ""
    fiscal: str = ""
    passing: str = ""


_DIGITS = {
    **{digit: value for value, digit in enumerate("〇一二三四五六七八九")},
    **{
        "零": 0,
        "两": 2,
        "兩": 2,
        "日": 1,
        "일": 1,
        "이": 2,
        "삼": 3,
        "사": 4,
        "오": 5,
        "육": 6,
        "칠": 7,
        "팔": 8,
        "구": 9,
    },
}
_COUNTS = {
    word: value
    for value, words in enumerate(
        (
            *(
                "",
                "한 하나",
                "두",
                "세 석",
                "네 넉",
                "다섯",
                "여섯",
                "일곱",
                "여덟",
                "아홉",
                "열",
                "열한",
                "열두",
                "열세",
            ),
            *("열네", "열다섯", "열여섯", "열일곱", "열여덟", "열아홉", "스무"),
        )
    )
    for word in words.split()
}


def number(said: str) -> int:
    """A number in digits, Han or Hangul, up to 99 in words; 0 for what is none."""
    if said.isdecimal():
        return int(said)
    if said in _COUNTS:
        return _COUNTS[said]
    said = said.replace("십", "十").replace("廿", "二十").replace("卅", "三十")
    if any(mark != "十" and mark not in _DIGITS for mark in said):
        return 0
    if "十" in said:
        tens, ones = said.split("十", 1)
        return 10 * (_DIGITS[tens] if len(tens) == 1 else 1) + (_DIGITS[ones] if len(ones) == 1 else 0)
    return int("".join(str(_DIGITS[mark]) for mark in said) or "0")


def plain(words: Mapping[str, T]) -> dict[str, T]:
    """The words without their blanks."""
    return {key.replace(" ", ""): value for key, value in words.items()}


def combined(heads: Mapping[str, int], *tails: str) -> dict[str, int]:
    """Every head before every tail."""
    return {head + tail: value for head, value in heads.items() for tail in tails}
