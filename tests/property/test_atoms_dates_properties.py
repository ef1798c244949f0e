"""Whatever is said on whatever day, a time phrase is a range of days within the text, or nothing."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from lamina.text import when
from lamina.text.language import Language

PIECES = [
    "0",
    "1",
    "2",
    "3",
    "12",
    "29",
    "31",
    "99",
    "2024",
    "9999",
    "/",
    "-",
    ":",
    ".",
    ",",
    "(",
    ")",
    "～",
    "１",
    "２",
    "😀",
    "to",
    "from",
    "since",
    "by",
    "until",
    "every",
    "last",
    "next",
    "this",
    "the",
    "of",
    "a",
    "half",
    "and",
    "on",
    "in",
    "day",
    "week",
    "month",
    "year",
    "weekend",
    "Friday",
    "May",
    "march",
    "Christmas",
    "Thanksgiving",
    "quarter",
    "Q1",
    "H2",
    "ago",
    "early",
    "end",
    "summer",
    "yesterday",
    "年",
    "月",
    "日",
    "号",
    "周",
    "週",
    "上",
    "下",
    "个",
    "本",
    "初",
    "底",
    "末",
    "半",
    "前",
    "后",
    "後",
    "三",
    "十",
    "二十",
    "去年",
    "明年",
    "周五",
    "国庆",
    "每",
    "起",
    "改到",
    "暑假",
    "季度",
    "先々週",
    "来月",
    "曜日",
    "金曜",
    "か月",
    "から",
    "まで",
    "の",
    "末",
    "令和",
    "春",
    "年度",
    "四半期",
    "週明け",
    "毎週",
    "お盆",
    "지난",
    "다음",
    "다다음",
    "주",
    "달",
    "요일",
    "금요일",
    "개월",
    "두",
    "보름",
    "초",
    "말",
    "부터",
    "까지",
    "마다",
    "분기",
    "여름",
    "방학",
    "작년",
    "어제",
    "크리스마스",
    "에",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).flatmap(
    lambda words: st.sampled_from(["".join(words), " ".join(words)])
)


@given(text=TEXTS | st.text(max_size=60), language=st.sampled_from(["en", "ko", "zh", "ja"]), base=st.dates())
def test_every_phrase_is_a_range_of_days_at_its_place(text: str, language: Language, base: date) -> None:
    phrases = when.find(text, language, base)

    places = [(phrase.start, phrase.end) for phrase in phrases]
    assert places == sorted(places)
    for phrase in phrases:
        assert 0 <= phrase.start < phrase.end <= len(text)
        assert phrase.first <= phrase.last
    first, last = when.validity(text, language, phrases)
    assert bool(first) == bool(phrases)
    assert not last or first < last
    assert len(when.resolved(text, phrases)) >= len(text)
