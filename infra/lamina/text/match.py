"""From whatever a person or an agent asks to an expression FTS5 accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.text.stem import stem
from lamina.text.stopwords import STOP_WORDS
from lamina.text.tokens import tokens

QUERY_TERMS = 192  # of a longer text half from its start and half from its end, where the question may stand
QUERY_CHARS = 20_000  # the same of a pasted document
MATCH_ROWS = 10_000  # about 10 ms of BM25; below, nothing is left out


def query_terms(query: str) -> list[str]:
    """Return the distinct terms that say what `query` is about, in order, at most 192.

    Function words are left out unless the query has nothing else ("who are you?").
    """
    if len(query) > QUERY_CHARS:
        query = f"{query[: QUERY_CHARS // 2]} {query[-QUERY_CHARS // 2 :]}"
    words = tokens(query)
    telling = [word for word in words if word not in STOP_WORDS] or words
    terms = list(dict.fromkeys(map(stem, telling)))
    if len(terms) > QUERY_TERMS:
        terms = terms[: QUERY_TERMS // 2] + terms[-QUERY_TERMS // 2 :]
    return terms


def match(query: str, rows: Callable[[str], int] | None = None) -> str | None:
    """Return an FTS5 expression that finds turns with any term of `query`, None if it has no term at all.

    Every term is quoted, so no input is ever FTS syntax. None (empty, spaces, punctuation only) means:
    nothing can be found by keyword.

    `rows` tells how many turns an expression finds, counting no further than MATCH_ROWS + 1 (FTS_COUNT).
    With it, a turn of a large space is only looked at if it holds one of the rarer terms, together about
    MATCH_ROWS turns (or the rarest term alone); the common ones still count in its score. In a space of
    up to that many turns nothing changes.
    """
    terms = query_terms(query)
    if not terms:
        return None
    every = _any(terms)
    if rows is None or len(terms) == 1 or rows(every) <= MATCH_ROWS:
        return every
    rare = _rarest(terms, rows)
    return every if len(rare) == len(terms) else f"({_any(rare)}) AND ({every})"


def _any(terms: Sequence[str]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)


def _rarest(terms: Sequence[str], rows: Callable[[str], int]) -> list[str]:
    """Return the rarest of `terms`, as many as find at most MATCH_ROWS turns together; at least one."""
    counted = sorted((rows(_any([term])), place) for place, term in enumerate(terms))
    rare: list[str] = []
    total = 0
    for count, place in counted:
        total += count
        if rare and total > MATCH_ROWS:
            break
        if count:
            rare.append(terms[place])
    return rare or list(terms)
