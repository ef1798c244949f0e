"""The order of keyword candidates: what the index found, read in its conversation. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest

import msgspec

PASSAGE = 0.5  # of the mean score of the best turns around: a passage about the query beats a lone word
PASSAGE_TURNS = 10  # to either side
PASSAGE_BEST = 3
OTHER_ROLES = 0.5  # what the assistant or a tool said is long and restates; what the user said is the fact

# Asked about the assistant's own words ("what did you recommend?"), its turns count as much as the user's.
_ASKS_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were) you\b|\bdid the (?:assistant|agent|model)\b"
    r"|\byou(?:'ve| have| had)? (?:\w+ )?(?:recommended|suggested|told|said|mentioned|gave|advised|explained|provided"
    r"|listed|described|shared|wrote|made|found|used)\b"
    r"|\byour (?:\w+ )?(?:recommend|suggest|advice|answer|expla|list|repl|respon)"
    r"|\b(?:previous|earlier|last) (?:chat|conversation|discussion|session)\b|\bremind me\b"
    r"|你(?:之前|上次|当时|刚才|推荐|建议|说过|告诉|提到|给我|提供|回答)"
    r"|(?:네가|니가|너는|당신이|어시스턴트가).*(?:추천|제안|말|알려|설명|했)"
    r"|(?:추천|제안|말|알려|설명)해? ?(?:줬|주었|주셨|준)"
    r"|(?:君|あなた|アシスタント)(?:が|は).*(?:勧め|推薦|提案|言っ|教え|説明)|(?:勧めて|推薦して|提案して|教えて)くれた",
    re.IGNORECASE,
)


class Candidate(msgspec.Struct, frozen=True):
    """A turn to be ranked.

    `turn` is its number in the index, `position` its ordinal within `session` (neighbours differ by 1),
    `score` what FTS_SEARCH gave.
    """

    turn: int
    session: str
    position: int
    role: str
    score: float


class Ranked(msgspec.Struct, frozen=True):
    """A turn and its keyword score, in units of BM25; `parts` add up to `score`."""

    turn: int
    score: float
    parts: Mapping[str, float]


def rank(candidates: Iterable[Candidate], query: str) -> list[Ranked]:
    """Return the candidates that `query` speaks for, best first, ties by turn number.

    A turn's score is its own BM25 and a share of the mean of the three best within ten turns of its session
    (`passage`); half of both for what the assistant or a tool said, unless the query asks about just that
    (`role`). Candidates without a positive score are left out.
    """
    sessions: dict[str, dict[int, Candidate]] = defaultdict(dict)
    for candidate in candidates:
        if candidate.score > 0:
            sessions[candidate.session][candidate.position] = candidate
    other = 1.0 if _ASKS_ASSISTANT.search(query) else OTHER_ROLES
    ranked = [found for turns in sessions.values() for found in _ranked(turns, other)]
    return sorted(ranked, key=lambda found: (-found.score, found.turn))


def _ranked(turns: Mapping[int, Candidate], other: float) -> Iterable[Ranked]:
    """Yield the scored turns of one session."""
    places = sorted(turns)
    scores = [turns[place].score for place in places]
    for place, score in zip(places, scores, strict=True):
        passage = _passage(place, places, scores)
        role = 0.0 if turns[place].role == "user" else (score + passage) * (other - 1.0)
        parts = {"bm25": score, "passage": passage, "role": role}
        yield Ranked(turns[place].turn, score + passage + role, parts)


def _passage(place: int, places: Sequence[int], scores: Sequence[float]) -> float:
    """Return the share that the best turns around `place` give to it."""
    first = bisect_left(places, place - PASSAGE_TURNS)
    last = bisect_right(places, place + PASSAGE_TURNS)
    return PASSAGE * sum(nlargest(PASSAGE_BEST, scores[first:last])) / PASSAGE_BEST
