"""Questions about a time: what their phrases mean, and what turns of that time gain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamina import text
from lamina.query.moments import TIME, asked, in_time
from lamina.times import micros

NOW = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)  # a Wednesday


def day(text: str) -> int:
    return micros(datetime.fromisoformat(f"{text}T12:00:00+00:00"))


def days(query: str, now: datetime = NOW) -> list[tuple[str, str]]:
    """First and last day of each span, in the time zone of `now`."""
    first = datetime(1970, 1, 1, tzinfo=UTC)

    def of(micros: int) -> str:
        return (first + timedelta(microseconds=micros)).astimezone(now.tzinfo).date().isoformat()

    return [(of(span.first_us), of(span.end_us - 1)) for span in asked(query, now).spans]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did I cook yesterday?", ("2026-11-17", "2026-11-17")),
        ("what did we decide last week about the harbour?", ("2026-11-09", "2026-11-15")),
        ("Which book did I mention two months ago?", ("2026-09-01", "2026-09-30")),
        ("Where was I on 7 May 2023?", ("2023-05-07", "2023-05-07")),
        ("what happened in March 2024", ("2024-03-01", "2024-03-31")),
        ("notes of 2025-02-03", ("2025-02-03", "2025-02-03")),
        ("지난주에 회의에서 뭘 정했지?", ("2026-11-09", "2026-11-15")),
        ("어제 뭐 먹었지?", ("2026-11-17", "2026-11-17")),
        ("2023년 5월에 어디 갔었어?", ("2023-05-01", "2023-05-31")),
        ("上周我们讨论了什么？", ("2026-11-09", "2026-11-15")),
        ("昨天我去了哪里？", ("2026-11-17", "2026-11-17")),
        ("先週の会議で何を決めた？", ("2026-11-09", "2026-11-15")),
        ("2023年5月に何をした？", ("2023-05-01", "2023-05-31")),
        ("what did I read in the past week?", ("2026-11-11", "2026-11-18")),
        ("What did we change over the last two weeks?", ("2026-11-04", "2026-11-18")),
        ("the last 3 days of work", ("2026-11-15", "2026-11-18")),
        ("최근 3일 동안 뭐 했지?", ("2026-11-15", "2026-11-18")),
        ("지난 2주 동안 뭘 읽었어?", ("2026-11-04", "2026-11-18")),
        ("过去三天我做了什么？", ("2026-11-15", "2026-11-18")),
        ("近一周有什么会议？", ("2026-11-11", "2026-11-18")),
        ("ここ一週間で何を買った？", ("2026-11-11", "2026-11-18")),
        ("2024년 3월부터 5월까지 뭐 했지?", ("2024-03-01", "2024-05-31")),
        ("2024年3月到5月我在哪里？", ("2024-03-01", "2024-05-31")),
        ("2024年3月から5月まで何をした？", ("2024-03-01", "2024-05-31")),
        ("what did we do from March to May 2024?", ("2024-03-01", "2024-05-31")),
        ("what did we do between 3 May and 10 May 2024?", ("2024-05-03", "2024-05-10")),
        ("2023년 12월부터 1월까지 뭐 썼지?", ("2023-12-01", "2024-01-31")),
        ("I slept badly yesterday. Anyway, what did we say on 3 May 2024? Thanks", ("2024-05-03", "2024-05-03")),
        ("昨天没睡好。对了，2024.5.3我们说了什么？", ("2024-05-03", "2024-05-03")),
    ],
)
def test_a_phrase_of_time_is_the_days_it_means_when_it_is_asked(query: str, expected: tuple[str, str]) -> None:
    assert days(query) == [expected]


def test_a_day_begins_where_the_asker_is() -> None:
    seoul = timezone(timedelta(hours=9))
    (span,) = asked("yesterday?", datetime(2026, 11, 18, 1, tzinfo=seoul)).spans

    assert span.first_us == micros(datetime(2026, 11, 16, 15, tzinfo=UTC))
    assert span.end_us == micros(datetime(2026, 11, 17, 15, tzinfo=UTC))


@pytest.mark.parametrize(
    "query", ["What database do we use?", "When is my flight next Friday?", "다음 주 일정이 뭐야?", "", "\x00?"]
)
def test_what_lies_ahead_and_what_says_no_time_is_left_to_the_words(query: str) -> None:
    question = asked(query, NOW)

    assert question.spans == ()
    assert question.words == query


def test_relative_phrases_are_no_words_to_look_for_and_dates_are() -> None:
    assert asked("what did I cook last week?", NOW).words.split() == ["what", "did", "I", "cook", "?"]
    assert asked("what did I cook in May 2023?", NOW).words == "what did I cook in May 2023?"


def test_told_soon_after_counts_for_half_and_less_with_every_day() -> None:
    (span,) = asked("what happened on 2026-11-02?", NOW).spans

    assert [round(span.closeness(day(f"2026-11-0{n}")), 2) for n in (1, 2, 3, 4, 5, 6)] == [
        *(0.0, 1.0),
        *(0.42, 0.25, 0.08, 0.0),
    ]


def test_the_borders_of_a_week_are_soft_and_those_of_a_day_are_not() -> None:
    (week,) = asked("what happened last week?", NOW).spans
    (one,) = asked("what happened yesterday?", NOW).spans

    assert [round(week.closeness(day(f"2026-11-0{n}")), 2) for n in (5, 6, 7, 8, 9)] == [0.0, 0.14, 0.29, 0.43, 1.0]
    assert one.closeness(day("2026-11-16")) == 0.0


def test_closeness_adds_its_share_of_the_best_score_and_brings_in_what_no_word_found() -> None:
    ranked = [text.Ranked(1, 10.0, {"bm25": 10.0}), text.Ranked(2, 8.0, {"bm25": 8.0})]

    timed = in_time(ranked, {2: 1.0, 3: 0.5, 4: 0.0}, seconds=[3, 4])

    assert [(one.turn, one.score) for one in timed] == [(2, 8.0 + 10 * TIME), (1, 10.0), (3, 5 * TIME)]
    assert all(sum(one.parts.values()) == one.score for one in timed)
    assert in_time(ranked, {1: 0.0, 2: 0.0}) == ranked


def test_what_lies_ahead_is_left_to_the_words_beside_a_time_that_does_not() -> None:
    question = asked("What did I say last week about the trip next week?", NOW)

    assert len(question.spans) == 1
    assert "next week" in question.words
    assert "last week" not in question.words
