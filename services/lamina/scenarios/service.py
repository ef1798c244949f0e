"""The scenarios as a service: wiring alone."""

from __future__ import annotations

from lamina.runtime import Service
from lamina.scenarios.act import act, plan
from lamina.scenarios.decide import decide
from lamina.scenarios.editing import EDITING
from lamina.scenarios.fold import TABLES, VERSION, State, fold


def service() -> Service[State]:
    """The `scenarios` service, for the entry-point group `lamina.services`."""
    return Service(
        name="scenarios",
        version=VERSION,
        tables=TABLES,
        state=State,
        fold=fold,
        decide=decide,
        plan=plan,
        act=act,
        decisions=("scenarios.arranged",),
        blobs=True,
        after=("atoms",),
        editing=EDITING,
    )
