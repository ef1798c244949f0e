"""Offloading as a service: wiring alone."""

from __future__ import annotations

from lamina.offload.fold import TABLES, VERSION, State, fold, needs
from lamina.runtime import Service


def service() -> Service[State]:
    """The `offload` service, for the entry-point group `lamina.services`."""
    return Service(name="offload", version=VERSION, tables=TABLES, state=State, fold=fold, needs=needs, blobs=True)
