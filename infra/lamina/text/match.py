"""From whatever a person or an agent asks to an expression FTS5 accepts."""

from __future__ import annotations

from lamina.text.stem import stem
from lamina.text.stopwords import STOP_WORDS
from lamina.text.tokens import tokens

QUERY_TERMS = 64  # more add time, not recall
QUERY_CHARS = 20_000  # read from the start of a pasted document


def query_terms(query: str) -> list[str]:
    """Return the distinct terms that say what `query` is about, in order, at most 64.

    Function words are left out unless the query has nothing else ("who are you?").
    """
    words = tokens(query[:QUERY_CHARS])
    telling = [word for word in words if word not in STOP_WORDS] or words
    return list(dict.fromkeys(map(stem, telling)))[:QUERY_TERMS]


def match(query: str) -> str | None:
    """Return an FTS5 expression that finds turns with any term of `query`, None if it has no term at all.

    Every term is quoted, so no input is ever FTS syntax. None (empty, spaces, punctuation only) means:
    nothing can be found by keyword.
    """
    return " OR ".join(f'"{term}"' for term in query_terms(query)) or None
