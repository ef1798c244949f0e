"""One order from two legs: both scores of every candidate, scaled to the question, weighed by the texts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lamina import text

SHORT_CHARS = 150.0  # a chat message: its words say what it is about, its neighbours what it answers
LONG_CHARS = 900.0  # a page: words are met by chance, its meaning is in the whole, it stands for itself
SHORT_WEIGHT = 0.4  # of the vectors, where the candidates are typically short
LONG_WEIGHT = 0.6
CONTRAST = 3.0  # cosines lie close together (0.8 to 0.95): the power that tells the near from the rest
REACH = 2  # turns to either side that share their nearness
BESIDE = 0.5  # of the nearness of a short turn, over its distance


class Beside(Struct, frozen=True):
    """A turn near a candidate in its session, one or two places away."""

    distance: int
    chars: int
    cosine: float


class Fact(Struct, frozen=True):
    """A candidate: its keyword score (None: no word of it is asked for) and its cosine (None: no vector yet)."""

    turn: text.Candidate
    chars: int
    keyword: text.Ranked | None
    cosine: float | None
    beside: Sequence[Beside] = ()


class Scope(Struct, frozen=True):
    """The cosines of everything that was compared: lowest, mean, highest."""

    low: float
    mean: float
    high: float

    def nearness(self, cosine: float) -> float:
        """0 for the farthest text of the scope, 1 for the nearest."""
        spread = self.high - self.low
        return (min(1.0, max(0.0, (cosine - self.low) / spread))) ** CONTRAST if spread > 0 else 0.0


class Scales(Struct, frozen=True):
    """What all candidates of a question are weighed by: the best keyword score, what the vectors count, and what
    counts of what others than the user said."""

    best: float
    weight: float
    other: float


def scales(facts: Sequence[Fact], query: str, share: float = 1.0) -> Scales:
    """The scales of a question, by all of its candidates; vectors count by the `share` of the texts that have one:
    the nearest of a few may be far."""
    best = max((fact.keyword.score for fact in facts if fact.keyword is not None), default=0.0)
    return Scales(best, share * vector_weight(facts) if best > 0 else 1.0, text.other_roles(query))


def shortlist(facts: Sequence[Fact], scope: Scope, by: Scales, most: int) -> list[Fact]:
    """The `most` candidates that both legs speak for most, before what stands beside them is looked at."""
    if len(facts) <= most:
        return list(facts)
    scores = []
    for fact in facts:
        near = by.weight * _nearness(fact, scope, by)
        words = (1.0 - by.weight) * fact.keyword.score / by.best if fact.keyword is not None and by.best > 0 else 0.0
        scores.append((-words - near * (1.0 if fact.turn.role == "user" else by.other), fact.turn.turn))
    order = sorted(range(len(facts)), key=scores.__getitem__)
    return [facts[n] for n in order[:most]]


def fuse(facts: Sequence[Fact], query: str, scope: Scope, by: Scales | None = None) -> list[text.Ranked]:
    """The candidates, best first, ties by turn number; `parts` add up to `score`.

    The keyword score is divided by the best one; nearness (`vector`) is the cosine laid between the lowest and the
    highest of the scope, to a power. Short turns give a share of it to short turns beside them (`beside`). A text
    without a vector yet is taken for as near as its words say. `by`: the scales, where these are not all candidates.
    """
    by = by or scales(facts, query)
    weight, best = by.weight, by.best
    ranked = []
    for fact in facts:
        parts: dict[str, float] = {}
        if fact.keyword is not None and best > 0:
            parts = {name: value * (1.0 - weight) / best for name, value in fact.keyword.parts.items()}
        parts["vector"] = weight * _nearness(fact, scope, by)
        parts["beside"] = weight * sum(_given(fact, one) * scope.nearness(one.cosine) for one in fact.beside)
        if fact.turn.role != "user":
            parts["role"] = parts.get("role", 0.0) + (by.other - 1.0) * (parts["vector"] + parts["beside"])
        ranked.append(text.Ranked(fact.turn.turn, sum(parts.values()), parts))
    return sorted(ranked, key=lambda one: (-one.score, one.turn))


def _nearness(fact: Fact, scope: Scope, by: Scales) -> float:
    """How near a candidate is. Of one without a vector its words are all that is known: it is ranked by them alone,
    so that while vectors are made nothing is found later than without any."""
    if fact.cosine is not None:
        return scope.nearness(fact.cosine)
    if fact.keyword is not None and by.best > 0:
        return min(1.0, fact.keyword.score / by.best)
    return scope.nearness(scope.mean)


def vector_weight(facts: Sequence[Fact]) -> float:
    """How much the vectors count, 0 to 1, by the median length of the candidates."""
    chars = sorted(fact.chars for fact in facts)
    typical = chars[len(chars) // 2] if chars else 0
    return SHORT_WEIGHT + _length(typical) * (LONG_WEIGHT - SHORT_WEIGHT)


def _given(fact: Fact, one: Beside) -> float:
    """The share that a turn gives to one beside it: none if either is long."""
    return BESIDE * (1.0 - _length(max(fact.chars, one.chars))) / one.distance


def _length(chars: float) -> float:
    """0 for a short text, 1 for a long one."""
    return min(1.0, max(0.0, (chars - SHORT_CHARS) / (LONG_CHARS - SHORT_CHARS)))
