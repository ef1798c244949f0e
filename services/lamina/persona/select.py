"""Which lines are shown: what fits, by weight, and how much of it each section may have. Pure.

A function of the lines alone: of how they came to be, in which batches or order, nothing is left in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from lamina.knowledge import SECTIONS, Section
from lamina.persona.tables import REMOVED, WRITTEN, LineRow

STANDING_CHARS = 4_000
REST_CHARS = 2_000
FIRM = 80
"""From this weight on a line does not fade: it was stated, and holds until something else is said."""
FADES_DAYS = 365
MONTH_DAYS = 30
FADING_A_MONTH = 4
MOST_FADING = 40
OVERHEAD_CHARS = 17
"""Of a line, beside its text: bullet, mark and line end."""
_QUOTA: dict[str, int] = {"identity": 600, "preferences": 600, "ways": 300, "people": 250, "tensions": 250}
_STANDING = ("standing", "project")
_DAY_US = 86_400_000_000


class Candidate(Struct, frozen=True):
    """A line, the characters that it takes, and the slot that it fills."""

    line: LineRow
    chars: int
    slot: str = ""


class Selection(Struct, frozen=True):
    shown: tuple[tuple[Section, str], ...]
    over: int


def select(candidates: Iterable[Candidate], newest_us: int) -> Selection:
    """The lines that fit, in the order of the file. What a person wrote is always among them."""
    there = [one for one in candidates if one.line.held != REMOVED]
    held = {one.slot: one.line for one in there if one.line.held == WRITTEN and one.slot}
    ruled = {one.slot.removeprefix("answer.") for one in there if one.slot.startswith("answer.")}
    placed: dict[str, list[Candidate]] = {section: [] for section in SECTIONS}
    for one in there:
        section = _section(one, held, ruled, newest_us)
        if section:
            placed[section].append(one)
    standing, over = _standing(placed, newest_us)
    kept = standing | _rest(placed, newest_us)
    shown = [
        (section, one.line.id)
        for section in SECTIONS
        for one in sorted(placed[section], key=_reading)
        if one.line.id in kept
    ]
    return Selection(tuple(shown), over)


def _section(one: Candidate, held: dict[str, LineRow], ruled: set[str], newest_us: int) -> str:
    """Where a line stands; empty where it is not shown: it ended, it faded, a person or a firmer rule said it."""
    line = one.line
    if line.held == WRITTEN:
        return line.section
    if line.until and line.until[:10] < _day(newest_us):
        return ""
    if line.weight < FIRM and newest_us - line.last_us > FADES_DAYS * _DAY_US:
        return ""
    if one.slot.startswith("request.") and one.slot.removeprefix("request.") in ruled:
        return ""
    human = held.get(one.slot) if one.slot else None
    if human is not None:  # said again after the edit it is a tension, never an answer to the person
        return "tensions" if line.last_us > human.edit_us else ""
    return line.section


def _standing(placed: dict[str, list[Candidate]], newest_us: int) -> tuple[set[str], int]:
    """Those of everywhere first, then those of projects; how many have no room."""
    kept: set[str] = set()
    over, left = 0, STANDING_CHARS
    for section in _STANDING:
        for one in sorted(placed[section], key=lambda one: _rank(one, newest_us)):
            fits = one.chars <= left or one.line.held == WRITTEN
            if fits:
                kept.add(one.line.id)
                left -= one.chars
            over += not fits
    return kept, over


def _rest(placed: dict[str, list[Candidate]], newest_us: int) -> set[str]:
    """Each section up to its share, then what is left to whoever comes first."""
    kept: set[str] = set()
    waiting: list[Candidate] = []
    left = REST_CHARS
    for section, quota in _QUOTA.items():
        own = quota
        for one in sorted(placed[section], key=lambda one: _rank(one, newest_us)):
            if one.chars <= own or one.line.held == WRITTEN:
                kept.add(one.line.id)
                own -= one.chars
                left -= one.chars
            else:
                waiting.append(one)
    for one in sorted(waiting, key=lambda one: _rank(one, newest_us)):
        if one.chars <= left:
            kept.add(one.line.id)
            left -= one.chars
    return kept


def _rank(one: Candidate, newest_us: int) -> tuple[bool, int, int, str]:
    """What a person wrote, then weight (less what has faded of it), then what was said last."""
    line = one.line
    months = max(0, newest_us - line.last_us) // (MONTH_DAYS * _DAY_US)
    faded = 0 if line.weight >= FIRM else min(MOST_FADING, FADING_A_MONTH * months)
    return line.held != WRITTEN, faded - line.weight, -line.last_us, line.id


def _reading(one: Candidate) -> tuple[str, int, str]:
    """The order of the file: what was said first stands first, so that something new leaves what was there alone."""
    return one.line.project if one.line.section == "project" else "", one.line.first_us, one.line.id


def _day(us: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).date().isoformat()


def ids(shown: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(id for _, id in shown)
