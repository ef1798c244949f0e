"""What is asked or guessed is no statement, whatever it looks like; what merely looks so is one."""

from __future__ import annotations

import pytest

from lamina.atoms.builtin import extract, rules_zh
from lamina.atoms.turns import Turn


def kept(text: str) -> list[str]:
    turn = Turn(id="e1", text=text, time="2026-11-30T09:15:00+09:00", role="user")
    return [text[span.start : span.end] for atom in extract([turn]) for span in atom.sources]


@pytest.mark.parametrize(
    "text",
    [
        "这样是不是更好",
        "好不好",
        "你会不会来",
        "喜不喜欢",
        "应不应该改",
        "谁负责这个",
        "怎么部署",
        "这个要多少钱",
        "為什麼會掛",
    ],
)
def test_a_question_without_its_mark_is_one(text: str) -> None:
    assert rules_zh.asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "我谁都不认识",
        "我什么都吃",
        "多少有点累",
        "没什么问题",
        "差不多了",
        "哪里都能跑",
        "无论怎么改都不行",
        "对不起我迟到了",
        "我就这么做",
    ],
)
def test_whatever_and_nobody_ask_nothing(text: str) -> None:
    assert not rules_zh.asks(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("저는 지금 부산에 살고 있는데 내년에 이사할 수도 있어요", "저는 지금 부산에 살고 있는데"),
        ("我住在上海，可能会搬家", "我住在上海"),
        ("私は大阪に住んでいます、引っ越すかもしれない", "私は大阪に住んでいます"),
    ],
)
def test_a_guess_at_the_end_leaves_what_was_said_before_it(text: str, said: str) -> None:
    assert kept(text) == [said]


@pytest.mark.parametrize(
    "text", ["만약 부산에 살았다면 좋았을 텐데", "如果我住在上海，我会很开心", "因为地球绕着太阳转，所以有四季。"]
)
def test_what_is_only_supposed_or_known_to_all_is_not_kept(text: str) -> None:
    assert kept(text) == []
