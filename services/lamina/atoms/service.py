"""The atoms as a service: wiring alone."""

from __future__ import annotations

from lamina.atoms.act import BuiltinAct
from lamina.atoms.builtin import VERSION as RULES
from lamina.atoms.builtin import extract
from lamina.atoms.decide import decide
from lamina.atoms.fold import TABLES, VERSION, State, fold
from lamina.atoms.planning import Planner
from lamina.runtime import Service
from lamina.runtime.spec import Act

BUILTIN = Planner(windows=40, turns=200)


def made(act: Act, plan: Planner = BUILTIN) -> Service[State]:
    """The service with a way of making its decisions."""
    return Service(
        name="atoms",
        version=VERSION,
        tables=TABLES,
        state=State,
        fold=fold,
        decide=decide,
        plan=plan,
        act=act,
        decisions=("atoms.extracted", "atoms.reconciled"),
        blobs=True,
    )


def service() -> Service[State]:
    """The `atoms` service, for the entry-point group `lamina.services`."""
    return made(BuiltinAct(extract, name="builtin", version=RULES))
