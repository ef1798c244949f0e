"""The model extractor: atoms and their reconciliation by a language model, checked in code.

extract(window, context, model)   -> Extraction      reconcile(fresh, known, model) -> Reconciliation
choose(source, ...)               -> Choice          the model, or None at the cap: the built-in rules go on
"""

from __future__ import annotations

from lamina.atoms.model.choosing import Choice, choose
from lamina.atoms.model.extractor import NAME, VERSION, Extraction, extract, needed
from lamina.atoms.model.reconcile import Candidate, Reconciliation, reconcile, reconciling_needs

__all__ = [
    "NAME",
    "VERSION",
    "Candidate",
    "Choice",
    "Extraction",
    "Reconciliation",
    "choose",
    "extract",
    "needed",
    "reconcile",
    "reconciling_needs",
]
