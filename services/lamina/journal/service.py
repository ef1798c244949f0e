"""The journal as a service: wiring alone."""

from __future__ import annotations

from lamina.journal.fold import TABLES, VERSION, State, fold, needs
from lamina.runtime import Service


def service() -> Service[State]:
    """The `journal` service, for the entry-point group `lamina.services`."""
    return Service(
        name="journal",
        version=VERSION,
        tables=TABLES,
        state=State,
        fold=fold,
        needs=needs,
        malformed=True,
        blobs=True,
        urgent=True,
    )
