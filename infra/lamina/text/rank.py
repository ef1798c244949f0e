"""The order of keyword candidates: what the index found, read in its conversation. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

PASSAGE = 0.5  # of the mean score of the best turns around: a passage about the query beats a lone word
PASSAGE_TURNS = 10  # to either side
PASSAGE_BEST = 3
AROUND = 0.3  # of the scores of the finds beside a turn without any term, over their distance
AROUND_TURNS = 2
OTHER_ROLES = 0.5  # what the assistant or a tool said is long and restates; what the user said is the fact

# Asked about the assistant's own words ("what did you recommend?"), its turns count as much as the user's.
_ASKS_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were) you\b|\bdid the (?:assistant|agent|model)\b"
    r"|\byou(?:'ve| have| had)? (?:\w+ )?(?:recommended|suggested|told|said|mentioned|gave|advised|explained|provided"
    r"|listed|described|shared|wrote|made|found|used)\b"
    r"|\byour (?:\w+ )?(?:recommend|suggest|advice|answer|expla|list|repl|respon)"
    r"|\b(?:previous|earlier|last) (?:chat|conversation|discussion|session)\b|\bremind me\b"
    r"|你(?:之前|上次|当时|刚才|推荐|建议|说过|告诉|提到|给我|提供|回答)"
    r"|(?:네가|니가|너는|당신이|어시스턴트가).{0,40}(?:추천|제안|말|알려|설명|했)"
    r"|(?:추천|제안|말|알려|설명)해? ?(?:줬|주었|주셨|준)"
    r"|(?:君|あなた|アシスタント)(?:が|は).{0,40}(?:勧め|推薦|提案|言っ|教え|説明)|(?:勧めて|推薦して|提案して|教えて)くれた",
    re.IGNORECASE,
)


class Candidate(msgspec.Struct, frozen=True):
    """A turn to be ranked.

    `turn` is its number in the index, `position` its ordinal within `session` (neighbours differ by 1),
    `score` what FTS_SEARCH gave, never negative. Where that found less than is asked for, the turns up to
    AROUND_TURNS before and after each find may be added with score 0.0: they fill the rest of the answer.
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

    A find's score is its own BM25 and a share of the mean of the three best within ten turns of its session
    (`passage`); a turn without any term has a share of the finds beside it (`around`). Half of it is taken
    from what the assistant or a tool said, unless the query asks about just that (`role`).
    Candidates without any score are left out.
    """
    sessions: dict[str, dict[int, Candidate]] = defaultdict(dict)
    for candidate in candidates:
        sessions[candidate.session][candidate.position] = candidate
    other = other_roles(query)
    ranked = [found for turns in sessions.values() for found in _ranked(turns, other) if found.score > 0]
    return sorted(ranked, key=lambda found: (-found.score, found.turn))


def other_roles(query: str) -> float:
    """Return what counts of the scores of turns that are not the user's, as `query` asks for them or not."""
    return 1.0 if _ASKS_ASSISTANT.search(query) else OTHER_ROLES


def _ranked(turns: Mapping[int, Candidate], other: float) -> Iterable[Ranked]:
    """Yield the scored turns of one session."""
    finds = {place: turns[place].score for place in sorted(turns) if turns[place].score > 0}
    places, scores = list(finds), list(finds.values())
    for place, turn in turns.items():
        passage = around = 0.0
        if place in finds:
            passage = _passage(place, places, scores)
        else:
            around = _around(place, finds)
        said = turn.score + passage + around
        role = 0.0 if turn.role == "user" else said * (other - 1.0)
        parts = {"bm25": turn.score, "passage": passage, "around": around, "role": role}
        yield Ranked(turn.turn, said + role, parts)


def _around(place: int, finds: Mapping[int, float]) -> float:
    """Return the share that the finds right beside `place` give to it."""
    return AROUND * sum(
        (finds.get(place - distance, 0.0) + finds.get(place + distance, 0.0)) / distance
        for distance in range(1, AROUND_TURNS + 1)
    )


def _passage(place: int, places: Sequence[int], scores: Sequence[float]) -> float:
    """Return the share that the best turns around `place` give to it."""
    first = bisect_left(places, place - PASSAGE_TURNS)
    last = bisect_right(places, place + PASSAGE_TURNS)
    return PASSAGE * sum(sorted(scores[first:last], reverse=True)[:PASSAGE_BEST]) / PASSAGE_BEST
