"""Atoms of two derivations beside one another: the same, gained, lost, or changed. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from lamina.knowledge import Span


class Stands(Struct, frozen=True):
    """An atom that stands; `same` is equal for two that say the same, `corrected` by which correction it does not."""

    id: str
    type: str
    text: str
    same: str
    sources: tuple[Span, ...]
    corrected: str = ""


class Pairs(Struct, frozen=True):
    """`changed` are pairs that say something else about the same words of the same source."""

    same: Sequence[tuple[Stands, Stands]]
    changed: Sequence[tuple[Stands, Stands]]
    lost: Sequence[Stands]
    gained: Sequence[Stands]


def compare(before: Sequence[Stands], after: Sequence[Stands]) -> Pairs:
    """Pair the atoms: first those that say the same, then those whose words overlap most; each atom once."""
    left: dict[str, list[Stands]] = defaultdict(list)
    for one in after:
        left[one.same].append(one)
    same: list[tuple[Stands, Stands]] = []
    old: list[Stands] = []
    for one in before:
        if left[one.same]:
            same.append((one, left[one.same].pop(0)))
        else:
            old.append(one)
    new = [one for ones in left.values() for one in ones]
    by_source: dict[str, list[Stands]] = defaultdict(list)
    for one in new:
        for id in {span.id for span in one.sources}:
            by_source[id].append(one)
    found = [
        (shared, one.id, other.id)
        for one in old
        for other in {other.id: other for span in one.sources for other in by_source[span.id]}.values()
        if (shared := _shared(one, other)) > 0
    ]
    olds, news = {one.id: one for one in old}, {one.id: one for one in new}
    changed = []
    for _, one_id, other_id in sorted(found, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if one_id in olds and other_id in news:
            changed.append((olds.pop(one_id), news.pop(other_id)))
    return Pairs(same, changed, list(olds.values()), list(news.values()))


def mapped(pairs: Pairs) -> Mapping[str, str]:
    """Atom of before -> atom of after, for those that are about the same."""
    return {one.id: other.id for one, other in (*pairs.same, *pairs.changed)}


def _shared(one: Stands, other: Stands) -> int:
    """How many characters of sources they have in common."""
    return sum(
        max(0, min(a.end, b.end) - max(a.start, b.start)) for a in one.sources for b in other.sources if a.id == b.id
    )
