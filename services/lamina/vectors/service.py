"""The vectors as a service: wiring alone."""

from __future__ import annotations

from lamina.runtime import Service
from lamina.vectors.fold import TABLES, VERSION, State, fold, needs


def service() -> Service[State]:
    """The `vectors` service, for the entry-point group `lamina.services`."""
    return Service(
        name="vectors",
        version=VERSION,
        tables=TABLES,
        state=State,
        fold=fold,
        needs=needs,
        embeds="texts",
    )
