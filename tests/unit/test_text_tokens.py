"""One kind of term for four languages and for code."""

from __future__ import annotations

import pytest

from lamina.text import normalise, terms, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ１２３", "abc123"),
        ("ｶﾌｪ", "カフェ"),
        ("Café Ångström", "cafe angstrom"),
        ("Straße İstanbul", "strasse istanbul"),
        ("йод がぎ 각", "йод がぎ 각"),
        ("a\x00b\ud800c", "a b c"),
        ("zero\u200bwidth so\u00adft", "zerowidth soft"),
    ],
)
def test_normalise_gives_one_spelling(text: str, expected: str) -> None:
    """Widths, case, Latin accents and controls vanish; the marks of other scripts stay."""
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We met at 5 pm.", ["we", "met", "at", "5", "pm"]),
        ("Caroline's don't O'Brien", ["caroline", "dont", "o", "brien"]),
        ("東京", ["東京"]),
        ("東京都", ["東京", "京都"]),
        ("猫", ["猫"]),
        ("회사에서", ["회사", "사에", "에서"]),
        ("プロジェクト", ["プロ", "ロジ", "ジェ", "ェク", "クト"]),
        ("明天用Redis吗", ["明天", "天用", "redis", "吗"]),
        ("😀👍🏽", ["😀", "👍"]),
        ("…—!?", []),
        ("", []),
    ],
)
def test_words_and_bigrams(text: str, expected: list[str]) -> None:
    """Words stand whole, runs of Han, kana and Hangul as bigrams, emoji alone, punctuation not at all."""
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", {"getusername", "get", "user", "name"}),
        ("HTTPServer", {"httpserver", "http", "server"}),
        ("user_name", {"user_name", "user", "name"}),
        ("src/app/main.py", {"src/app/main.py", "src", "app", "main", "py"}),
        ("C:\\app\\main.py", {"c:", "app", "main", "py"} - {"c:"}),
        ("E1234", {"e1234", "1234"}),
        ("v2.1.3", {"v2.1.3", "v2", "2", "1", "3"}),
        ("c++ C#", {"c++", "c#", "c"}),
        ("gpt-4", {"gpt-4", "gpt", "4"}),
        ("me@example.org", {"me@example.org", "me", "example", "org"}),
        ("1,500 2,300.50", {"1500", "2300.50"}),
        ("2026-11-30", {"2026-11-30", "2026", "11", "30"}),
        ("well-being", {"well", "being"}),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(text: str, expected: set[str]) -> None:
    """A name in code, a path, a version or a number gives itself and what it is made of."""
    assert expected <= set(tokens(text))


def test_a_long_token_is_cut() -> None:
    """A token has at most 64 characters, so that a blob cannot fill the index."""
    assert tokens("x" * 1000) == ["x" * 64]


def test_terms_meet_across_inflections() -> None:
    """English endings and irregular forms are cut to one term; other scripts stay as they are."""
    assert terms("She went running") == terms("she goes runs")
    assert terms("東京 서울") == ["東京", "서울"]


def test_half_and_full_width_meet() -> None:
    """The same word in half and full width gives the same tokens."""
    assert tokens("ﾃﾞｰﾀ Ｒｅｄｉｓ") == tokens("データ redis")
