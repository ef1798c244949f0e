"""What `lamina bench` found: the document that `--json` writes."""

from __future__ import annotations

from msgspec import Struct


class Way(Struct, frozen=True, kw_only=True):
    """The questions asked of some layers. Shares are of 1; a question's evidence counts where any item stands on it.

    `first`, `first_5` and `first_10` are the shares of the questions with a piece of their evidence that high up,
    `mrr` the mean of 1 over the place of the first one (0 where it is not there). Milliseconds are of whole requests.
    """

    layers: tuple[str, ...]
    first: float
    first_5: float
    first_10: float
    mrr: float
    p50_ms: float
    p99_ms: float
    unavailable: int
    degraded: dict[str, int]


class Missed(Struct, frozen=True, kw_only=True):
    """A question whose evidence was not among the items."""

    question: str
    evidence: tuple[str, ...]


class Benched(Struct, frozen=True, kw_only=True):
    """`bench recall`: questions of a file, or made of turns of the log (`source` "log"), and what came of it."""

    space: str
    source: str
    turns: int
    questions: int
    limit: int
    ways: tuple[Way, ...]
    missed: tuple[Missed, ...]
