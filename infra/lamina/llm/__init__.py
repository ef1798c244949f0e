"""A language model behind any OpenAI-compatible endpoint; one port, one budget.

shared(config)           the one of this process: .model (None: none configured), .meter, .config
model.ask(Ask(...))      -> Answer; raises a ModelError, which tells the tokens spent all the same
budget.refused(...)      why no more may be asked today
"""

from __future__ import annotations

from lamina.llm.errors import (
    AskTooLarge,
    BadAnswer,
    ModelBusy,
    ModelDenied,
    ModelError,
    ModelInvalid,
    ModelTimeout,
    ModelUnavailable,
    Refused,
)
from lamina.llm.port import Answer, Ask, Model
from lamina.llm.source import Source, shared

__all__ = [
    "Answer",
    "Ask",
    "AskTooLarge",
    "BadAnswer",
    "Model",
    "ModelBusy",
    "ModelDenied",
    "ModelError",
    "ModelInvalid",
    "ModelTimeout",
    "ModelUnavailable",
    "Refused",
    "Source",
    "shared",
]
