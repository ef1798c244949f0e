"""The atoms as a service: wiring alone."""

from __future__ import annotations

from msgspec.structs import replace

from lamina.atoms.act import BuiltinAct
from lamina.atoms.builtin import VERSION as RULES
from lamina.atoms.builtin import extract
from lamina.atoms.decide import decide
from lamina.atoms.fold import TABLES, VERSION, State, fold
from lamina.atoms.planning import Planner
from lamina.config import Config
from lamina.runtime import Service
from lamina.runtime.spec import Act

BUILTIN = Planner(windows=40, turns=200)
MODEL = Planner(windows=1, turns=1, for_model=True)
WAITS = 1_000_000
"""Attempts of a model: one that is away is waited for, however long; what cannot be used is left to the rules."""


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


def configured(config: Config) -> Service[State]:
    """With the model of the configuration where it names one, else with the rules."""
    rules = BuiltinAct(extract, name="builtin", version=RULES)
    if not config.llm.base_url:
        return made(rules)
    from lamina.atoms.act_model import ModelAct  # without a model nothing of it is loaded
    from lamina.llm import shared

    return replace(made(ModelAct(shared(config.llm), rules), MODEL), max_attempts=WAITS)


def service() -> Service[State]:
    """The `atoms` service, for the entry-point group `lamina.services`."""
    return replace(made(BuiltinAct(extract, name="builtin", version=RULES)), configure=configured)
