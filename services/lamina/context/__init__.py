"""Makes an agent's message list fit its context window without losing a result. Pure: no clock, no I/O."""

from __future__ import annotations

from lamina.context.fitting import fit
from lamina.context.shapes import Observation, Provider
from lamina.context.state import Cut, Decision, Dropped, Fitted, Known, State
from lamina.context.validity import validate

__all__ = [
    "Cut",
    "Decision",
    "Dropped",
    "Fitted",
    "Known",
    "Observation",
    "Provider",
    "State",
    "fit",
    "validate",
]
