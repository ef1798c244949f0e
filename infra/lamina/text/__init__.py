"""Text analysis that the index side (journal) and the search side (query) share. Pure: no I/O, no state.

    normalise(text) -> str                      one spelling for comparing texts
    tokens(text) -> list[str]                   words, CJK bigrams, identifiers and their parts
    terms(text) -> list[str]                    tokens with English endings cut, as the index holds them

    FTS_SCHEMA, FTS_INSERT, FTS_DELETE          the index `turns_fts`; rowid = turn number
    document(role, name, text, previous) -> Entry(columns, previous)
                                                execute(FTS_INSERT, (number, *entry.columns)); keep
                                                entry.previous per session for its next turn

    match(query, rows=None) -> str | None       a safe MATCH expression; None: nothing to search by keyword;
                                                rows = lambda e: execute(FTS_COUNT, (e, MATCH_ROWS + 1))
                                                keeps a search of 100,000 turns at some 10 ms
    FTS_SEARCH                                  execute(FTS_SEARCH, (match(query), limit)) -> (number, score)
    query_terms(query) -> list[str]             the terms `match` asks for
    rank(candidates, query) -> list[Ranked]     the order of the best 200 that FTS_SEARCH gave, and, where
                                                those are fewer than asked for, of the turns around them
    other_roles(query) -> float                 what of the scores of other turns than the user's counts

Every function accepts any str (NUL, lone surrogates, 100 MB) and never raises.
"""

from __future__ import annotations

from lamina.text.fulltext import (
    FTS_COUNT,
    FTS_DELETE,
    FTS_INSERT,
    FTS_ROWS,
    FTS_SCHEMA,
    FTS_SEARCH,
    FTS_WEIGHTS,
    Entry,
    Previous,
    document,
)
from lamina.text.match import MATCH_ROWS, QUERY_TERMS, match, query_terms
from lamina.text.normalise import normalise
from lamina.text.rank import AROUND_TURNS, Candidate, Ranked, other_roles, rank
from lamina.text.stem import stem
from lamina.text.stopwords import STOP_WORDS
from lamina.text.tokens import terms, tokens

__all__ = [
    "AROUND_TURNS",
    "FTS_COUNT",
    "FTS_DELETE",
    "FTS_INSERT",
    "FTS_ROWS",
    "FTS_SCHEMA",
    "FTS_SEARCH",
    "FTS_WEIGHTS",
    "MATCH_ROWS",
    "QUERY_TERMS",
    "STOP_WORDS",
    "Candidate",
    "Entry",
    "Previous",
    "Ranked",
    "document",
    "match",
    "normalise",
    "other_roles",
    "query_terms",
    "rank",
    "stem",
    "terms",
    "tokens",
]
