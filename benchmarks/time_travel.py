"""Thirty questions whose right answer changes over a log in four languages, asked as of five moments.

The log is told twice: as it was lived, month after month, and asked by position; and imported in one go, its months
in another order, and asked by time. Of each answer: does it know anything that was said later (it must not), is the
value of then the first that it names, is it among its items at all.

usage: python -m benchmarks.time_travel [--limit 5]
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.common import arguments, daemon, keep, quantiles
from lamina.client import Memory
from lamina.records import Hits

MONTHS = (1, 3, 5, 7, 9)
ORDER = (3, 0, 4, 2, 1)
"""Of the months, how they come in the import."""
Topic = tuple[str, str, str, tuple[str, ...]]
"""Language, question, statement, and its value at each of the five moments; empty: nothing was said yet."""

TOPICS: tuple[Topic, ...] = (
    ("en", "Where do I live?", "I live in {} now.", ("Lisbon", "Lisbon", "Porto", "Madrid", "Madrid")),
    ("en", "Which database do we use?", "We use {} as our database.", ("Oracle", "MySQL", "MySQL", "MySQL", "Neo4j")),
    ("en", "Who leads the mobile team?", "{} leads the mobile team.", ("Ada", "Ada", "Grace", "Grace", "Edsger")),
    ("en", "What is my favourite tea?", "My favourite tea is {}.", ("", "sencha", "sencha", "rooibos", "rooibos")),
    ("en", "What car do I drive?", "I drive a {}.", ("Skoda", "Skoda", "Skoda", "Volvo", "Fiat")),
    ("en", "When is the release planned?", "The release is planned for {}.", ("June", "July", "August", "July", "")),
    ("en", "Which cloud do we deploy to?", "We deploy to {}.", ("Azure", "Azure", "Hetzner", "Hetzner", "Scaleway")),
    ("en", "What instrument am I learning?", "I am learning the {}.", ("", "cello", "cello", "oboe", "oboe")),
    (
        "en",
        "What is the wifi password at home?",
        "The wifi password at home is {}.",
        ("fern12", "", "moss34", "", ""),
    ),
    ("ko", "나는 어디에 살아?", "나는 지금 {}에 살아.", ("서울", "서울", "부산", "부산", "제주")),
    (
        "ko",
        "회사에서 쓰는 데이터베이스는 뭐야?",
        "우리 회사 데이터베이스는 {}야.",
        ("오라클", "오라클", "몽고디비", "", ""),
    ),
    ("ko", "내 담당 의사는 누구야?", "내 담당 의사는 {} 선생님이야.", ("", "김민수", "", "박지영", "")),
    ("ko", "좋아하는 음식이 뭐야?", "내가 좋아하는 음식은 {}이야.", ("냉면", "", "비빔밥", "", "떡볶이")),
    ("ko", "회의는 무슨 요일이야?", "주간 회의는 {}이야.", ("월요일", "수요일", "", "금요일", "")),
    ("ko", "고양이 이름이 뭐야?", "고양이 이름은 {}야.", ("", "", "나비", "", "보리")),
    ("ko", "요즘 배우는 언어가 뭐야?", "요즘 {}를 배우고 있어.", ("독일어", "", "스페인어", "터키어", "")),
    ("zh", "我住在哪里?", "我现在住在{}。", ("北京", "", "上海", "", "成都")),
    ("zh", "项目用什么数据库?", "项目的数据库是{}。", ("达梦", "", "人大金仓", "", "巨杉")),
    ("zh", "谁负责测试?", "{}负责测试。", ("王芳", "李强", "", "", "赵敏")),
    ("zh", "我最喜欢喝什么茶?", "我最喜欢喝{}。", ("", "龙井茶", "", "普洱茶", "")),
    ("zh", "我的狗叫什么名字?", "我的狗叫{}。", ("", "", "豆豆", "", "旺财")),
    ("zh", "发布日期是几月?", "发布日期定在{}。", ("六月", "七月", "", "九月", "")),
    ("zh", "我在学什么乐器?", "我在学{}。", ("古筝", "", "", "二胡", "琵琶")),
    ("ja", "私はどこに住んでいますか?", "私は今{}に住んでいます。", ("東京", "", "大阪", "札幌", "")),
    (
        "ja",
        "データベースは何を使っていますか?",
        "データベースは{}を使っています。",
        ("サイベース", "", "", "カサンドラ", ""),
    ),
    ("ja", "担当者は誰ですか?", "この案件の担当者は{}さんです。", ("田中", "", "鈴木", "", "佐藤")),
    ("ja", "好きな飲み物は何ですか?", "好きな飲み物は{}です。", ("", "麦茶", "", "ほうじ茶", "")),
    ("ja", "会議は何曜日ですか?", "定例会議は{}です。", ("火曜日", "", "木曜日", "", "月曜日")),
    ("ja", "犬の名前は何ですか?", "犬の名前は{}です。", ("", "ポチ", "", "", "ハナ")),
    ("ja", "今どの楽器を習っていますか?", "今は{}を習っています。", ("三味線", "", "尺八", "", "")),
)
NOISE = (
    "The weather was fine today and the train was late again.",
    "Can you check the spelling of this paragraph?",
    "오늘은 비가 많이 와서 산책을 못 했어.",
    "이 문장 좀 고쳐 줘.",
    "今天下雨了,没有出去散步。",
    "请帮我检查一下这段话。",
    "今日は雨で散歩に行けませんでした。",
    "この文章を直してください。",
)


def standing(values: tuple[str, ...]) -> list[str]:
    """The value that holds at each moment: what was said last."""
    found: list[str] = []
    for value in values:
        found.append(value or (found[-1] if found else ""))
    return found


def month(index: int) -> list[tuple[str, datetime]]:
    """What is said in a month, with its times: every value that changes, among other things."""
    when = datetime(2025, MONTHS[index], 10, 9, tzinfo=UTC)
    said: list[str] = []
    for n, (_, _, statement, values) in enumerate(TOPICS):
        if values[index] and (index == 0 or values[index] != standing(values)[index - 1]):
            said.append(statement.format(values[index]))
        said.append(NOISE[(n + index) % len(NOISE)] + f" ({index}.{n})")
    return [(text, when + timedelta(minutes=3 * n)) for n, text in enumerate(said)]


async def told(memory: Memory, order: tuple[int, ...], ends: list[int]) -> None:
    """Say the months in this order; after each, `ends` has the position at which all was derived of it."""
    for index in order:
        for text, when in month(index):
            await memory.turn("user", text, session=f"month {MONTHS[index]}", time=when)
        await memory.end_session(f"month {MONTHS[index]}")
        await memory.settled(300)
        ends.append((await memory.recall("x")).as_of_seq)
    await memory.settled(600, layers=["vectors"])


def judged(hits: Hits, values: tuple[str, ...], index: int) -> dict[str, bool]:
    texts = [item.text for item in hits.items]
    right = standing(values)[index]
    known = {value for value in values[: index + 1] if value}
    later = {value for value in values[index + 1 :] if value} - known
    first = next((text for text in texts if any(value in text for value in known)), "")
    return {
        "knows_later": any(value in text for text in texts for value in later),
        "first": right in first if right else not first,
        "among": any(right in text for text in texts) if right else not first,
    }


async def asked(memory: Memory, moments: list[Any], limit: int) -> dict[str, Any]:
    """Every question as of every moment, twice: the second time the views of then are there."""
    made, again = [], []
    by_moment: list[Counter[str]] = [Counter() for _ in moments]
    by_language: dict[str, Counter[str]] = {}
    for index, moment in enumerate(moments):
        start = time.perf_counter()
        await memory.recall("first", as_of=moment, deadline_s=60)
        made.append(time.perf_counter() - start)
        for language, question, _, values in TOPICS:
            start = time.perf_counter()
            hits = await memory.recall(question, as_of=moment, limit=limit, deadline_s=60)
            again.append(time.perf_counter() - start)
            assert hits.status != "unavailable", hits.degraded
            assert not hits.degraded, hits.degraded
            found = Counter(name for name, is_so in judged(hits, values, index).items() if is_so) + Counter(asked=1)
            by_moment[index] += found
            by_language[language] = by_language.get(language, Counter()) + found
    return {
        "all": told_of(sum(by_moment, Counter())),
        "by_moment": [told_of(one) for one in by_moment],
        "by_language": {name: told_of(one) for name, one in by_language.items()},
        "made_s": [round(one, 2) for one in made],
        "asked": quantiles(again),
    }


def told_of(found: Counter[str]) -> dict[str, int]:
    return {name: found[name] for name in ("asked", "knows_later", "first", "among")}


async def main() -> None:
    options = arguments(__doc__, limit=5)
    figures: dict[str, Any] = {"questions": len(TOPICS), "moments": len(MONTHS), "limit": options.limit}
    async with daemon() as (home, _):
        async with Memory.open(space="lived", home=home.path) as memory:
            ends: list[int] = []
            await told(memory, tuple(range(len(MONTHS))), ends)
            figures["lived, by position"] = await asked(memory, list(ends), options.limit)
        async with Memory.open(space="imported", home=home.path) as memory:
            await told(memory, ORDER, [])
            moments = [datetime(2025, one, 28, tzinfo=UTC) for one in MONTHS]
            figures["imported, by time"] = await asked(memory, list(moments), options.limit)
    keep("time_travel", figures)


if __name__ == "__main__":
    asyncio.run(main())
