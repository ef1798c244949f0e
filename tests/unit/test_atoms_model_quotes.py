"""Quotes are found where they stand, and nowhere else."""

from __future__ import annotations

import unicodedata

import pytest

from lamina.atoms.model.quotes import Source


@pytest.mark.parametrize(
    ("text", "quote", "found"),
    [
        ("I use  Postgres\n16 here", "I use Postgres 16", "I use  Postgres\n16"),
        ("it's “fine”, he said", 'it\'s "fine"', "it's “fine”"),
        ("it’s fine", "it's fine", "it’s fine"),
        ("I use Postgres 16.", '"I use Postgres 16"', "I use Postgres 16"),
        ("I use Postgres 16", "I use Postgres 16...", "I use Postgres 16"),
        ("バージョン16を使う", "バージョン16を", "バージョン16を"),
        ("ＡＢＣを使う", "ABCを", "ＡＢＣを"),
        (
            unicodedata.normalize("NFD", "부산에 살아요"),
            "부산에 살아요",
            unicodedata.normalize("NFD", "부산에 살아요"),
        ),
        (unicodedata.normalize("NFD", "ein Café"), "Café", unicodedata.normalize("NFD", "Café")),
        ("ﬁle ﬁxed", "file fixed", "ﬁle ﬁxed"),
        ("👍🏽 yes I do", "👍🏽 yes", "👍🏽 yes"),
    ],
)
def test_found(text: str, quote: str, found: str) -> None:
    place = Source(text).find(quote)

    assert place is not None
    assert text[place.start : place.end] == found


@pytest.mark.parametrize("quote", ["", " ", "x", "I use MySQL", "i use postgres", '""', "…", "x" * 5_000, "\x00\x00"])
def test_not_found(quote: str) -> None:
    assert Source("I use Postgres 16. xx").find(quote) is None


def test_what_stands_outside_of_recalled_blocks_is_preferred() -> None:
    block = "<lamina-memory>likes tea</lamina-memory>"

    inside = Source(f"{block} hello").find("likes tea")
    outside = Source(f"{block} he likes tea {block}").find("likes  tea")
    across = Source(f"a {block} b").find("a <lamina-memory>likes")

    assert inside is not None
    assert inside.recalled
    assert outside is not None
    assert not outside.recalled
    assert outside.start == len(block) + 4
    assert across is not None
    assert across.recalled
