"""What the index holds and what a query finds in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest

from lamina.text import (
    FTS_DELETE,
    FTS_INSERT,
    FTS_SCHEMA,
    FTS_SEARCH,
    Previous,
    document,
    match,
    query_terms,
    stem,
)


def found(texts: Sequence[str], query: str) -> list[int]:
    """The numbers of the `texts` that `query` finds, best first; they are the turns of one user's session."""
    connection = opened()
    previous: Previous | None = None
    for number, said in enumerate(texts):
        entry = document("user", None, said, previous)
        connection.execute(FTS_INSERT, (number, *entry.columns))
        previous = entry.previous
    return searched(connection, query)


def opened() -> sqlite3.Connection:
    """An empty index in memory, on an SQLite that can delete from contentless tables."""
    sqlite = pytest.importorskip("pysqlite3.dbapi2")
    connection: sqlite3.Connection = sqlite.connect(":memory:")
    connection.execute(FTS_SCHEMA)
    return connection


def searched(connection: sqlite3.Connection, query: str) -> list[int]:
    """The turn numbers that `query` finds."""
    expression = match(query)
    if expression is None:
        return []
    return [row[0] for row in connection.execute(FTS_SEARCH, (expression, 10))]


LONG = "filler " * 61


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("서울에서 회의가 있었다", "서울"),
        ("서울 회의", "서울에서"),
        ("내일 출장을 갑니다", "출장"),
        ("明天去北京出差", "北京"),
        ("会社の会議は明日です", "会議"),
        ("プロジェクトを始めた", "プロジェクト"),
        ("ﾌﾟﾛｼﾞｪｸﾄを始めた", "プロジェクト"),
        ("我用Redis做缓存", "redis"),
        ("Ｒｅｄｉｓ を使う", "Redis"),
        ("great 🎉 news", "🎉"),
        ("fixed getUserName in src/app/main.py", "user name"),
        ("fixed getUserName in src/app/main.py", "main.py"),
        ("fixed getUserName in src/app/main.py", "getUserName"),
        ("it fails with E1234 since v2.1.3", "E1234"),
        ("it fails with E1234 since v2.1.3", "2.1.3"),
        ("we write it in c++", "C++?"),
        ("Caroline's budget is $1,500", "1500"),
        ("She bought a café", "buys cafe"),
    ],
)
def test_a_turn_is_found_in_its_language(said: str, query: str) -> None:
    """Words of two characters, particles, widths, mixed scripts, code and inflections meet their query."""
    noise = [LONG, "완전히 다른 이야기", "完全不同的话题", "まったく別の話題", "nothing to see here", LONG]

    assert found([*noise, said], query)[:1] == [len(noise)]


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    """A short turn is searched together with the short one before it, below what it says itself."""
    texts = ["Which database do you use?", "Postgres, of course.", LONG, "Something else."]

    assert found(texts, "database") == [0, 1]


@pytest.mark.parametrize("texts", [["database " * 61, "Yes."], ["Which database?", LONG]])
def test_long_turns_are_searched_alone(texts: list[str]) -> None:
    """A long turn neither lends its words to the next nor takes those of the one before."""
    assert found(texts, "database") == [0]


def test_length_is_counted_alike_with_and_without_spaces() -> None:
    """Eighty Chinese characters are about fifty words: still a short turn."""
    assert found(["数据库" + "很" * 77, "好的。"], "数据库") == [0, 1]


def test_the_speaker_is_searched() -> None:
    """A name is found though the text does not hold it; a role that every row has is not in the index."""
    assert document("user", "Caroline", "I paint.", None).columns[0] == "carolin i paint"
    assert document("Caroline", None, "I paint.", None).columns[0] == "carolin i paint"
    assert document("user", None, "I paint.", None).columns[0] == "i paint"


def test_a_deleted_turn_is_gone() -> None:
    """The index forgets a turn by its number alone."""
    connection = opened()
    connection.execute(FTS_INSERT, (7, *document("user", None, "secret", None).columns))

    connection.execute(FTS_DELETE, (7,))

    assert searched(connection, "secret") == []


def test_function_words_are_asked_for_only_alone() -> None:
    """They are left out beside a telling word, and used when there is nothing else."""
    assert query_terms("what is the database of his?") == ["databas"]
    assert query_terms("데이터베이스는 언제 어디에서?") == query_terms("데이터베이스는")
    assert query_terms("who are you") == ["who", "ar", "you"]


def test_nothing_to_ask_for_is_none() -> None:
    """Empty and punctuation-only queries have no expression."""
    assert match("") is None
    assert match("?! … \x00") is None


def test_fts_syntax_is_only_text() -> None:
    """Operators, quotes, columns and stars of FTS5 are words or nothing."""
    assert match('own : "data*" NOT (redis)') == '"data" OR "redi"'


def test_common_terms_do_not_make_a_large_space_slow() -> None:
    """A turn must hold one of the rarer terms; the common ones count in its score and nothing more."""
    counts = {'"nate"': 9_000, '"write"': 60_000, '"club"': 800}

    expression = match("What does Nate write for his club?", lambda each: counts.get(each, 70_000))

    assert expression == '("club" OR "nate") AND ("nate" OR "write" OR "club")'


def test_a_small_space_is_searched_for_every_term() -> None:
    """While all terms together find few turns, none is left out."""
    assert match("redis port", lambda each: 10_000) == match("redis port")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("caresses", "caress"), ("ponies", "poni"), ("relational", "relat"), ("hopping", "hop"), ("agreed", "agre")],
)
def test_stem_follows_porter(word: str, expected: str) -> None:
    """Regular words have the stems of Porter's paper."""
    assert stem(word) == expected


def test_stem_agrees_with_sqlite() -> None:
    """Our stemmer and SQLite's give the same stems, so that an index may be read by either."""
    connection = opened()
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(word, tokenize='porter ascii')")
    connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")
    endings = (
        "",
        "s",
        "es",
        "ed",
        "ing",
        "er",
        "ly",
        "ness",
        "ful",
        "ation",
        "ational",
        "ize",
        "ement",
        "y",
        "ies",
        "ll",
    )
    words = [
        start + ending for start in ("plan", "agre", "hop", "cry", "toy", "syl", "oper", "b") for ending in endings
    ]
    connection.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(words))

    for term, number in connection.execute("SELECT term, doc FROM stems"):
        assert (words[number], stem(words[number])) == (words[number], term)
