"""The kinds of content a digest knows, in the order they are tried."""

from __future__ import annotations

from typing import Protocol

from lamina.digest.kinds import code, data, diff, listing, logs, markup, prose, table
from lamina.digest.kinds.plan import Content, Plan


class Kind(Protocol):
    """One module of this package."""

    def looks(self, content: Content) -> bool:
        """Whether the content is of this kind."""
        ...

    def plan(self, content: Content) -> Plan:
        """What this kind says about the lines."""
        ...


ORDER: tuple[tuple[str, Kind], ...] = (
    ("diff", diff),
    ("log", logs),
    ("data", data),
    ("table", table),
    ("listing", listing),
    ("markup", markup),
    ("code", code),
    ("text", prose),
)


def kind_of(content: Content) -> str:
    """The name of the kind, by content first; the call decides only what the content leaves open."""
    return next(name for name, kind in ORDER if kind.looks(content))


def plan_of(content: Content) -> Plan:
    """What the content's kind says about its lines."""
    return next(kind.plan(content) for _, kind in ORDER if kind.looks(content))
