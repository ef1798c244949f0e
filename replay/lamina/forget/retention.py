"""Retention: what is older than the policy of a home keeps it, chosen to be forgotten like anything else.

Ages are those of arrival: an import of old conversations is as young as the import. Derived layers have no age of
their own, since every sentence knows its source: an atom goes with the last turn that says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from lamina.config import RetentionConfig
from lamina.events import Event
from lamina.knowledge import Span
from lamina.store.driver import connect, translated

DAY_US = 86_400 * 1_000_000
GUARD = 0.8
"""No policy erases more than this share of what was said in a space, unless it is told to."""
_SQL = "SELECT sources FROM atoms WHERE type = ? AND status IN ('active', 'contradicted')"


class Expired:
    """Tells of one event after another whether the policy lets it go; see `lamina.forget.chosen.Chooser`."""

    reads_texts = False

    def __init__(self, policy: RetentionConfig, pinned: frozenset[str], now_us: int) -> None:
        self._days = {
            "turn.recorded": policy.turns_days,
            "context.cut": policy.turns_days,
            "recall.asked": policy.turns_days,
            "tool.returned": policy.results_days,
        }
        self._sessions = frozenset(policy.pinned_sessions)
        self._pinned = pinned
        self._now_us = now_us

    def __call__(self, event: Event, blobs: Mapping[str, bytes], at_us: int) -> bool:
        days = self._days.get(event.type, 0)
        if not days or event.id in self._pinned or event.session in self._sessions:
            return False
        return at_us < self._now_us - days * DAY_US

    def malformed(self, id: str, raw: bytes) -> bool:
        return False

    def missing(self) -> list[str]:
        return []


def pinned(root: Path, policy: RetentionConfig) -> frozenset[str]:
    """The sources of atoms of the types that the policy keeps, as long as they stand."""
    link = root / "views" / "atoms.db"
    if not policy.pinned_types or not link.exists():
        return frozenset()
    path = link.resolve()
    found: set[str] = set()
    with translated(path):
        db = connect(path, readonly=True)
        try:
            for kind in policy.pinned_types:
                for (sources,) in db.execute(_SQL, (kind,)):
                    found.update(span.id for span in msgspec.json.decode(sources, type=tuple[Span, ...]))
        finally:
            db.close()
    return frozenset(found)
