"""Which statement of a situation becomes its title."""

from __future__ import annotations

import pytest

from lamina.scenarios.headline import ranks


def first(*texts: str, subject: str = "user") -> str:
    by = ranks([(f"User: {text}", subject) for text in texts])
    return texts[max(range(len(texts)), key=by.__getitem__)]


@pytest.mark.parametrize(
    "texts",
    [
        ("We move the bookshop from the old till to SQLite.", "I'd love to try it!", "I love that."),
        ("The export of the shop runs at night on the Harbour server.", "That was a great idea.", "I'm so excited."),
        ("도매 창고는 매주 화요일 오전에 영국으로 책을 발송합니다.", "정말 기뻐요.", "그거 좋았어요."),
        ("我们的书目每天凌晨三点更新一次，格式是JSON。", "我很开心。", "那真的很好。"),
        ("棚札の印刷はA4用紙一枚に二十四面でお願いします。", "とても嬉しいです。", "それは楽しみ。"),
    ],
)
def test_a_title_says_what_it_is_about_and_not_how_somebody_feels(texts: tuple[str, ...]) -> None:
    assert first(*texts) == texts[0]
    assert first(*reversed(texts)) == texts[0]


def test_what_others_tell_of_too_comes_before_what_stands_alone() -> None:
    assert (
        first(
            "A red bicycle stood near the harbour gate yesterday.",
            "The migration of the orders to PostgreSQL begins on Monday.",
            "The migration of the orders needs a second database.",
        )
        != "A red bicycle stood near the harbour gate yesterday."
    )


def test_nothing_is_no_error() -> None:
    assert ranks([]) == []
    assert ranks([("", ""), ("!", "user")]) == [0.0, 0.0]
