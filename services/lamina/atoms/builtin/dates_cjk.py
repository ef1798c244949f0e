"""Time phrases of Korean, Chinese and Japanese, resolved against the day they were said.

The three build them alike: a word for a day; a word for a week, month or year, with a part of it behind; a number
with a unit and "before" or "after"; a date of the calendar. One reader serves all, each language is a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date

from msgspec import Struct

from lamina.atoms.builtin import spans_of_time as span
from lamina.atoms.builtin.language import Language
from lamina.atoms.builtin.spans_of_time import Range, When


class _Table(Struct, frozen=True, kw_only=True):
    """The words of one language: each maps to how many days, weeks, months or years it is away."""

    days: Mapping[str, int]
    weeks: Mapping[str, int]
    months: Mapping[str, int]
    years: Mapping[str, int]
    weekdays: Mapping[str, int]
    weekend: str
    of: str
    year: str
    month: str
    day: str
    counts: Mapping[str, int]
    units: Mapping[str, str]
    spans: Mapping[str, tuple[int, str]]
    before: str
    after: str
    since: str
    every: str


_HAN_COUNTS = {
    "一": 1, "二": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
    "十一": 11, "十二": 12, "半": 0,
}  # fmt: skip
_ZH_DAYS = {
    name: number for number, names in enumerate(("一", "二", "三", "四", "五", "六", "日天")) for name in names
}

_TABLES: dict[Language, _Table] = {
    "ko": _Table(
        days={
            "그끄저께": -3,
            "그저께": -2,
            "그제": -2,
            "엊그제": -2,
            "어제": -1,
            "어젯밤": -1,
            "간밤": -1,
            "오늘": 0,
            "오늘밤": 0,
            "내일모레": 2,
            "내일": 1,
            "모레": 2,
            "글피": 3,
        },
        weeks={
            "지지난 ?주": -2,
            "저저번 ?주": -2,
            "지난 ?주": -1,
            "저번 ?주": -1,
            "이번 ?주": 0,
            "금주": 0,
            "다다음 ?주": 2,
            "다음 ?주": 1,
            "담주": 1,
            "차주": 1,
        },
        months={
            "지지난 ?달": -2,
            "지난 ?달": -1,
            "저번 ?달": -1,
            "이번 ?달": 0,
            "이달": 0,
            "다다음 ?달": 2,
            "다음 ?달": 1,
        },
        years={
            "재작년": -2,
            "작년": -1,
            "지난 ?해": -1,
            "올해": 0,
            "금년": 0,
            "올(?= ?[봄여가겨])": 0,
            "내후년": 2,
            "내년": 1,
        },
        weekdays={f"{name}요일": number for number, name in enumerate("월화수목금토일")},
        weekend="말",
        of=" ?",
        year=" ?년",
        month=" ?월",
        day=" ?일",
        counts={
            "한": 1,
            "두": 2,
            "세": 3,
            "석": 3,
            "네": 4,
            "넉": 4,
            "다섯": 5,
            "여섯": 6,
            "일곱": 7,
            "여덟": 8,
            "아홉": 9,
            "열": 10,
            "일": 1,
            "이": 2,
            "삼": 3,
            "사": 4,
            "오": 5,
            "육": 6,
            "칠": 7,
            "팔": 8,
            "구": 9,
            "십": 10,
        },
        units={"일": "d", "날": "d", "주일": "w", "주": "w", "개월": "m", "달": "m", "년": "y", "해": "y"},
        spans={
            "하루": (1, "d"),
            "이틀": (2, "d"),
            "사흘": (3, "d"),
            "나흘": (4, "d"),
            "닷새": (5, "d"),
            "열흘": (10, "d"),
            "보름": (15, "d"),
            "반년": (6, "m"),
        },
        before=" ?전(?!까지|부|체|화|문|에는 없)",
        after=" ?(?:후|뒤|있다가|이따가)(?!부터)",
        since="부터",
        every="매주 ?|마다",
    ),
    "zh": _Table(
        days={
            "大前天": -3,
            "前天": -2,
            "昨天": -1,
            "昨日": -1,
            "昨晚": -1,
            "昨夜": -1,
            "今天": 0,
            "今日": 0,
            "今晚": 0,
            "今早": 0,
            "今晨": 0,
            "大后天": 3,
            "后天": 2,
            "明天": 1,
            "明日": 1,
            "明早": 1,
            "明晚": 1,
            "後天": 2,
        },
        weeks={
            "上上个?(?:周|星期|礼拜)": -2,
            "上个?(?:周|星期|礼拜|週)": -1,
            "(?:这|本)个?(?:周|星期|礼拜|週)": 0,
            "下下个?(?:周|星期|礼拜)": 2,
            "下个?(?:周|星期|礼拜|週)": 1,
        },
        months={"上上个?月": -2, "上个?月": -1, "这个?月": 0, "本月": 0, "下下个?月": 2, "下个?月": 1},
        years={"前年": -2, "去年": -1, "今年": 0, "后年": 2, "明年": 1},
        weekdays={
            **_ZH_DAYS,
            **{f"{head}{name}": number for head in ("周", "星期", "礼拜", "週") for name, number in _ZH_DAYS.items()},
        },
        weekend="(?:周?末)",
        of="的? ?",
        year=" ?年",
        month=" ?月(?!份额)",
        day=" ?[日号號]",
        counts=_HAN_COUNTS,
        units={
            "天": "d",
            "日": "d",
            "周": "w",
            "个星期": "w",
            "星期": "w",
            "个礼拜": "w",
            "礼拜": "w",
            "个月": "m",
            "年": "y",
        },
        spans={"半年": (6, "m"), "半个月": (15, "d")},
        before=" ?(?:之前|以前|前)(?!端|台|后|提|面|景|往|途)",
        after=" ?(?:之后|以后|后)(?!端|台|面|来|续)",
        since="(?:以来|起|开始)",
        every="每个?",
    ),
    "ja": _Table(
        days={
            "一昨日": -2,
            "おととい": -2,
            "昨日": -1,
            "きのう": -1,
            "昨夜": -1,
            "昨晩": -1,
            "ゆうべ": -1,
            "今日": 0,
            "きょう": 0,
            "本日": 0,
            "今朝": 0,
            "けさ": 0,
            "今夜": 0,
            "今晩": 0,
            "明後日": 2,
            "あさって": 2,
            "明日": 1,
            "あした": 1,
        },
        weeks={"先々週": -2, "先週": -1, "今週": 0, "再来週": 2, "来週": 1},
        months={"先々月": -2, "先月": -1, "今月": 0, "再来月": 2, "来月": 1},
        years={"一昨年": -2, "おととし": -2, "去年": -1, "昨年": -1, "今年": 0, "ことし": 0, "再来年": 2, "来年": 1},
        weekdays={f"{name}曜日?": number for number, name in enumerate("月火水木金土日")},
        weekend="(?:の?週?末)",
        of="の?",
        year=" ?年",
        month=" ?月",
        day=" ?日",
        counts=_HAN_COUNTS,
        units={"日": "d", "週間": "w", "週": "w", "[ヶケか箇カ]月": "m", "年": "y"},
        spans={"半年": (6, "m"), "一昨昨日": (3, "d"), "1日": (1, "d")},
        before="(?:ほど|くらい|ぐらい)?前(?!後|回|提|方|向|者|面)",
        after="(?:ほど|くらい|ぐらい)?後(?!ろ|半|で|輩)",
        since="(?:から|以来)",
        every="毎週?",
    ),
}


def _any(words: Mapping[str, object]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


def _pattern(table: _Table) -> re.Pattern[str]:
    md = rf"(?P<{{m}}>\d{{{{1,2}}}}){table.month}(?:{table.of}(?P<{{d}}>\d{{{{1,2}}}}){table.day})?"
    return re.compile(
        "|".join(
            (
                r"(?P<iso>(?<!\d)(?:19|20)\d\d[-./]\d{1,2}[-./]\d{1,2})(?!\d)",
                rf"(?P<full>(?<!\d)(?P<y1>(?:19|20)\d\d){table.year}(?:{table.of}{md.format(m='m1', d='d1')})?)",
                rf"(?P<year>(?P<y2>{_any(table.years)})(?:{table.of}{md.format(m='m2', d='d2')})?)",
                rf"(?P<month>(?P<mo>{_any(table.months)})(?:{table.of}(?P<d3>\d{{1,2}}){table.day})?)",
                rf"(?P<week>(?P<we>{_any(table.weeks)})(?:{table.of}(?:(?P<wd>{_any(table.weekdays)})|(?P<wk>{table.weekend})))?)",
                rf"(?P<span>(?P<sn>{_any(table.spans)})(?:(?P<sb>{table.before})|{table.after}))",
                rf"(?P<away>(?P<n>\d{{1,4}}|{_any(table.counts)}) ?(?P<u>{_any(table.units)})"
                rf"(?:(?P<b>{table.before})|{table.after}))",
                rf"(?P<md>(?<!\d){md.format(m='m4', d='d4')})",
                rf"(?P<nth>(?<![\d.:/-])(?P<d5>\d{{1,2}}){table.day})(?!간|째|동안|치|가|間|目|程|ほど|以|内|後|前|之|后|多|常|志|報|报|本| ?(?:전|후|뒤|만에))",
                rf"(?P<day>{_any(table.days)})",
                rf"(?P<wday>(?P<ev>{table.every})?(?P<wn>{_any({k: v for k, v in table.weekdays.items() if len(k) > 1})}))",
            )
        )
    )


_PATTERNS: dict[Language, re.Pattern[str]] = {name: _pattern(table) for name, table in _TABLES.items()}
_WORDS = {
    name: {
        kind: [(re.compile(word), number) for word, number in sorted(words.items(), key=lambda pair: -len(pair[0]))]
        for kind, words in (
            ("years", table.years),
            ("months", table.months),
            ("weeks", table.weeks),
            ("weekdays", table.weekdays),
        )
    }
    for name, table in _TABLES.items()
}
_SINCE = {name: re.compile(table.since) for name, table in _TABLES.items()}
_HINT = {
    "ko": re.compile("[일달주년해제늘레피말틀흘\\d]"),
    "zh": re.compile("[天日年月周週期拜晚夜早晨号\\d]"),
    "ja": re.compile("[日年月週夜晩朝曜う]|おと|あさ|あし|けさ|ことし|\\d"),
}


def find(text: str, language: Language, base: date, past: bool) -> Iterator[When]:
    """The time phrases of a sentence; `past` tells on which side a bare weekday or month lies."""
    if not _HINT[language].search(text):
        return
    table = _TABLES[language]
    for found in _PATTERNS[language].finditer(text):
        kind = found.lastgroup if found.lastgroup in _KINDS else next(k for k in _KINDS if found.group(k) is not None)
        days = _KINDS[kind](found, table, language, base, past)
        if days is not None:
            absolute = kind in ("iso", "full")
            open_ = _SINCE[language].match(text, found.end()) is not None
            yield When(found.start(), found.end(), *days, absolute=absolute, open=open_)


def _value(language: Language, kind: str, word: str) -> int:
    return next(number for pattern, number in _WORDS[language][kind] if pattern.fullmatch(word))


def _iso(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    year, month, day = re.split(r"[-./]", found["iso"])
    return span.exact(int(year), int(month), int(day))


def _of_year(year: int, month: str | None, day: str | None) -> Range | None:
    if month is None:
        return span.year(year)
    return span.exact(year, int(month), int(day)) if day else span.month(year, int(month))


def _full(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    return _of_year(int(found["y1"]), found["m1"], found["d1"])


def _year(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    return _of_year(base.year + _value(language, "years", found["y2"]), found["m2"], found["d2"])


def _month(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    year, month = span.months_after(base, _value(language, "months", found["mo"]))
    return span.exact(year, month, int(found["d3"])) if found["d3"] else span.month(year, month)


def _week(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    weeks = _value(language, "weeks", found["we"])
    if found["wd"]:
        return span.weekday(base, weeks, _value(language, "weekdays", found["wd"]))
    return span.weekend(base, weeks) if found["wk"] else span.week(base, weeks)


def _span(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    number, unit = table.spans[found["sn"]]
    return span.ago(base, -number if found["sb"] else number, unit)


def _away(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    number = int(found["n"]) if found["n"].isdecimal() else table.counts[found["n"]]
    unit = next(value for pattern, value in table.units.items() if re.fullmatch(pattern, found["u"]))
    return span.ago(base, -number if found["b"] else number, unit) if number else None


def _month_day(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    return span.nearest_year(base, int(found["m4"]), int(found["d4"]) if found["d4"] else None, past)


def _nth(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    """A day of the month named without its month: the nearest one on the side that is told of."""
    for months in (0, -1) if past else (0, 1):
        day = span.exact(*span.months_after(base, months), int(found["d5"]))
        if day and (day[0] <= base if past else day[0] >= base):
            return day
    return None


def _day(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    return span.day(base, table.days[found["day"]])


def _weekday(found: re.Match[str], table: _Table, language: Language, base: date, past: bool) -> Range | None:
    if found["ev"]:
        return None  # every Monday is a habit
    return span.near(base, _value(language, "weekdays", found["wn"]), past)


_KINDS = {
    "iso": _iso,
    "full": _full,
    "year": _year,
    "month": _month,
    "week": _week,
    "span": _span,
    "away": _away,
    "md": _month_day,
    "nth": _nth,
    "day": _day,
    "wday": _weekday,
}
