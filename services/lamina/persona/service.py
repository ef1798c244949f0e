"""The persona as a service: wiring alone."""

from __future__ import annotations

from lamina.persona.act import act
from lamina.persona.decide import decide
from lamina.persona.editing import EDITING
from lamina.persona.fold import TABLES, VERSION, State, fold
from lamina.persona.planning import plan
from lamina.runtime import Service


def service() -> Service[State]:
    """The `persona` service, for the entry-point group `lamina.services`."""
    return Service(
        name="persona",
        version=VERSION,
        tables=TABLES,
        state=State,
        fold=fold,
        decide=decide,
        plan=plan,
        act=act,
        decisions=("persona.revised",),
        blobs=True,
        after=("atoms",),
        editing=EDITING,
    )
