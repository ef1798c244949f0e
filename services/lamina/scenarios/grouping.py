"""What belongs together, as a function of the atoms alone: episodes, and how far one goes on from another. Pure.

An episode is what was said in one session without a long pause. Each episode goes on from at most one earlier
episode, the one that it shares most telling words with, the more the nearer they lie in time; a scenario is what
hangs together by that. Which atoms came first, or in which batches, has no part in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cmp_to_key

from msgspec import Struct

from lamina.scenarios.tables import AtomRow, EpisodeRow, json, strings
from lamina.text import terms

RULES = "2"
"""Raised when these rules change: it stands in every decision."""
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
GAP_US = HOUR_US // 6
"""A longer pause begins a new episode, in a session that goes on for more than a day."""
ENOUGH = 0.15
"""The least score by which an episode goes on from another."""
COMMON = 32
"""A word that stood in so many of the episodes just before tells nothing; no more of them are looked at."""
LATELY_US = 30 * DAY_US
_WEIGHTS = ((0, 1.0), (2, 0.7), (6, 0.4), (16, 0.15))
"""A word that stood in at most so many episodes lately counts so much."""
FLOOR = 0.3
"""Of the score, what time never takes."""
NEAR = 4.0
"""What is minutes away counts so much more."""
SAME_PROJECT = 0.25
"""Of a project, what follows within a day or two goes on from what was before by that alone."""
MOST_WORDS = 64
"""Of an atom."""
DIGITS = 9


class Link(Struct, frozen=True):
    """That an episode goes on from `parent`; nothing does, where that is empty. `shared`: how many telling words."""

    parent: str = ""
    score: float = 0.0
    shared: int = 0


def telling(text: str, subject: str = "") -> frozenset[str]:
    """The words of an atom that may tell what it is about: no numbers, and not who said it."""
    said = f"{subject}: "
    if subject and text[: len(said)].casefold() == said.casefold():
        text = text[len(said) :]
    found = dict.fromkeys(word for word in terms(text) if not word.isdecimal())
    return frozenset(list(found)[:MOST_WORDS])


def weight(episodes: int) -> float:
    """What a word counts that stood in so many episodes lately: of what came after nothing is asked, so that what
    once hung together is not torn apart by it."""
    return next((value for most, value in _WEIGHTS if episodes <= most), 0.0)


def order(atom: AtomRow) -> tuple[int, str, str]:
    """The order of atoms in time; the same whatever ids they were given."""
    return atom.time_us, tie(atom), atom.id


def tie(atom: AtomRow) -> str:
    """What sets two atoms of one moment apart: their sources and words, as a hash."""
    raw = "\x1f".join((*sorted(strings(atom.sources)), atom.text))
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def runs(atoms: Sequence[AtomRow], *, whole: bool) -> list[list[AtomRow]]:
    """Atoms of one session and project, cut at pauses; not at all where the session is one of a day (`whole`)."""
    found: list[list[AtomRow]] = []
    for atom in sorted(atoms, key=order):
        if found and (whole or atom.time_us - found[-1][-1].time_us <= GAP_US):
            found[-1].append(atom)
        else:
            found.append([atom])
    return found


def episode(id: str, atoms: Sequence[AtomRow]) -> EpisodeRow:
    """The row of an episode of these atoms, in their order; it goes on from nothing yet."""
    words = frozenset[str]().union(*(telling(atom.text, atom.subject) for atom in atoms))
    return EpisodeRow(
        id=id,
        atoms=json([atom.id for atom in atoms]),
        session=atoms[0].session,
        project=atoms[0].project,
        first_us=atoms[0].time_us,
        last_us=max(atom.time_us for atom in atoms),
        tie=tie(atoms[0]),
        words=len(words),
        held=json(sorted(words)),
    )


def before(one: EpisodeRow, other: EpisodeRow) -> bool:
    """Does the first begin earlier? An order without ties."""
    return (one.first_us, one.tie, one.id) < (other.first_us, other.tie, other.id)


def _compare(one: EpisodeRow, other: EpisodeRow) -> int:
    return -1 if before(one, other) else 1


KEY = cmp_to_key(_compare)
"""Sorts episodes in the order in which they begin."""


def score(later: EpisodeRow, earlier: EpisodeRow, shared: float) -> float:
    """How much the later goes on from the earlier, by the weights of the words that both have."""
    if later.project and earlier.project and later.project != earlier.project:
        return 0.0
    apart = max(0, later.first_us - earlier.last_us)
    likeness = shared / (later.words * earlier.words) ** 0.5 if later.words and earlier.words else 0.0
    time = FLOOR + (1 - FLOOR) / (1 + apart / DAY_US) + NEAR / (1 + apart / GAP_US)
    project = SAME_PROJECT / (1 + apart / (3 * DAY_US)) if later.project and later.project == earlier.project else 0.0
    return round(likeness * time + project, DIGITS)
