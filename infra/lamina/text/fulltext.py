"""What a turn puts into the full-text index, and the schema of that index."""

from __future__ import annotations

import msgspec

from lamina.text.tokens import INNER_SYMBOLS, is_cjk, terms_line

JOINED_WORDS = 60  # a turn and the one before it are searched together only if neither is longer
_ROLES = frozenset({"user", "assistant", "tool", "system"})  # in every row, so they tell nothing apart
_WORDS_PER_BIGRAM = 0.6  # running Chinese, Japanese and Korean text has about 1.7 characters a word

FTS_SCHEMA = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS turns_fts USING fts5("
    "own, before, content='', contentless_delete=1, "
    f"tokenize=\"ascii tokenchars '{INNER_SYMBOLS}'\")"
)
FTS_INSERT = "INSERT INTO turns_fts(rowid, own, before) VALUES (?, ?, ?)"  # (turn number, *entry.columns)
FTS_DELETE = "DELETE FROM turns_fts WHERE rowid = ?"
FTS_WEIGHTS = {"own": 1.0, "before": 0.5}
_WEIGHTS = ", ".join(map(str, FTS_WEIGHTS.values()))
FTS_SEARCH = (  # (match(query), limit) -> (turn number, BM25 score, higher is better)
    f"SELECT turns_fts.rowid AS turn, -bm25(turns_fts, {_WEIGHTS}) AS score FROM turns_fts "  # noqa: S608 - own
    "WHERE turns_fts MATCH ? ORDER BY score DESC, turn LIMIT ?"
)
FTS_ROWS = "SELECT rowid FROM turns_fts WHERE turns_fts MATCH ?"  # (expression) -> every turn it finds
FTS_COUNT = (  # (expression, MATCH_ROWS + 1) -> how many turns it finds, counted no further
    "SELECT count(*) FROM (SELECT 1 FROM turns_fts WHERE turns_fts MATCH ? LIMIT ?)"
)


class Previous(msgspec.Struct, frozen=True):
    """What a session's last turn leaves for its next one; at most a few hundred bytes.

    `text` is empty when that turn was too long to be searched together with another.
    """

    text: str


class Entry(msgspec.Struct, frozen=True):
    """The columns of one row of the index, and what to hand to the next turn of the same session."""

    columns: tuple[str, ...]
    previous: Previous


def document(role: str, name: str | None, text: str, previous: Previous | None) -> Entry:
    """Return what the index stores for a turn.

    `previous` is the `Entry.previous` of the turn before it in the same session, None for the first.
    One column holds the terms of its speaker's name (or of a role of its own kind) and its own; the other
    those of a short previous turn, so that an answer is found by the words of its question. Pure; any text
    is accepted.
    """
    own = terms_line(text)
    speaker = name or ("" if role in _ROLES else role)
    line = " ".join(filter(None, (terms_line(speaker), own))) if speaker else own
    short = _words(own) <= JOINED_WORDS
    before = previous.text if previous is not None and short else ""
    return Entry((line, before), Previous(line if short else ""))


def _words(line: str) -> float:
    """Return the length of a turn in words, by its terms in a line, alike for text with and without spaces."""
    count = line.count(" ") + 1 if line else 0
    if count <= JOINED_WORDS or line.isascii():
        return count
    pairs = sum(1 for term in line.split(" ") if not term.isascii() and is_cjk(term))
    return count - (1 - _WORDS_PER_BIGRAM) * pairs
