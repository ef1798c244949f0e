"""What every model looks like to those who ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct


class Ask(Struct, frozen=True, kw_only=True):
    """One question. `system` is the same for all questions of a kind, so that a provider can cache it.

    `schema` is a JSON schema of the answer, which servers that can are held to; `name` names it.
    """

    system: str
    user: str
    name: str
    schema: Mapping[str, Any]
    max_tokens: int


class Answer(Struct, frozen=True, kw_only=True):
    """What the model said, as received.

    `cut`: it ran into `max_tokens`. `tokens`: asked and answered, of all attempts.
    """

    text: str
    model: str
    tokens: int
    cut: bool = False
    attempts: int = 1


class Model(Protocol):
    """A model that can be asked. Nothing of an answer is to be believed before it was checked."""

    @property
    def name(self) -> str:
        """What is configured; an answer names what answered."""
        ...

    async def ask(self, ask: Ask) -> Answer:
        """The answer, of at most a few hundred KB, within the model's own deadline; raises a `ModelError`."""
        ...
