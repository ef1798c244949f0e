"""Any text is searchable or defined: no input breaks the analysis or reaches FTS5 as syntax."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina import text

ANY = st.text(st.characters(exclude_categories=())) | st.text(
    st.sampled_from("\"'*()^:-+.{}[]\\ \x00aORNEAR\ud800서東か\u3000😀")
)


@pytest.fixture(scope="module")
def index() -> sqlite3.Connection:
    """An empty index, to which examples are added and in which they are searched."""
    sqlite = pytest.importorskip("pysqlite3.dbapi2")
    connection: sqlite3.Connection = sqlite.connect(":memory:")
    connection.execute(text.FTS_SCHEMA)
    return connection


@given(ANY)
def test_tokens_are_short_folded_and_clean(value: str) -> None:
    """tokens gives words of 1 to 64 characters that no tokenizer of FTS5 can cut again."""
    for token in text.tokens(value):
        assert 1 <= len(token) <= 64
        assert not any(mark in token for mark in "\"'\x00 \t\n")
        token.encode()


@given(
    st.lists(ANY | st.sampled_from(["Running", "studies'", "getUserName", "(cats)", "서울에서"]), max_size=70).map(
        " ".join
    )
)
def test_terms_are_stemmed_tokens(value: str) -> None:
    """terms, kept by the run and made by shorter ways, gives what stemming each token gives, at every call."""
    expected = [text.stem(token) for token in text.tokens(value)]
    assert text.terms(value) == text.terms(value) == expected
    assert text.document("user", None, value, None).columns == (" ".join(expected), "")


@given(ANY)
def test_normalise_is_idempotent(value: str) -> None:
    """normalise gives a text that it leaves alone the next time, and that can be stored."""
    once = text.normalise(value)

    assert text.normalise(once) == once
    once.encode()


@given(ANY, ANY, ANY)
def test_any_turn_is_indexed_and_found_by_its_own_words(
    index: sqlite3.Connection, role: str, before: str, value: str
) -> None:
    """What document made of a turn is found by match of the same text, whatever the text."""
    previous = text.document(role, None, before, None).previous
    entry = text.document(role, None, value, previous)
    index.execute("DELETE FROM turns_fts")
    index.execute(text.FTS_INSERT, (1, *entry.columns))

    expression = text.match(value)

    assert (expression is None) == (not text.tokens(value))
    if expression is not None:
        assert [row[0] for row in index.execute(text.FTS_SEARCH, (expression, 5))] == [1]


@given(ANY, st.integers(0, text.MATCH_ROWS + 1))
def test_a_narrowed_expression_is_accepted(index: sqlite3.Connection, query: str, first: int) -> None:
    """However common the terms of a query are, FTS5 accepts what match makes of them."""
    expression = text.match(
        query, lambda each: text.MATCH_ROWS + 1 if " OR " in each else (first * len(each)) % 10_002
    )

    assert (expression is None) == (text.match(query) is None)
    if expression is not None:
        index.execute(text.FTS_SEARCH, (expression, 5)).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "x" * 100_000,
        "word " * 20_000,
        '"' * 100_000,
        "東" * 100_000,
        "\x00" * 100_000,
        "a.b/c_" * 20_000,
        "_" * 100_000,
        "네가" * 50_000,
        "😀" * 100_000,
    ],
)
def test_a_huge_query_is_bounded(index: sqlite3.Connection, query: str) -> None:
    """A query of 100,000 characters asks for at most 192 terms and is accepted by FTS5."""
    expression = text.match(query)

    assert len(text.query_terms(query)) <= text.QUERY_TERMS
    assert len(text.rank([text.Candidate(1, "s", 1, "user", 1.0)], query)) == 1
    if expression is not None:
        index.execute(text.FTS_SEARCH, (expression, 5)).fetchall()
