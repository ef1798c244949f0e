"""What a model may do instead of answering. Every error says what it has cost."""

from __future__ import annotations

from lamina.errors import Busy, Denied, Invalid, LaminaError, Permanent, Timeout, TooLarge, Transient, Unavailable


class ModelError(LaminaError):
    """Root of what asking a model raises. `tokens` were spent all the same, over every attempt."""

    def __init__(self, message: str, tokens: int = 0) -> None:
        super().__init__(message)
        self.tokens = tokens


class ModelUnavailable(ModelError, Unavailable):
    """The endpoint is not there, or what answers is no model (HTML, an empty answer, a server error)."""


class ModelTimeout(ModelError, Timeout):
    """The endpoint did not answer whole within the deadline."""


class ModelBusy(ModelError, Busy):
    """The endpoint asks to come later. `retry_after_s` is what it said, 0 where it said nothing."""

    def __init__(self, message: str, tokens: int = 0, retry_after_s: float = 0.0) -> None:
        super().__init__(message, tokens)
        self.retry_after_s = retry_after_s


class BadAnswer(ModelError, Transient):
    """The model answered, and the answer is not what was asked for; another time it may be."""


class Refused(ModelError, Permanent):
    """The model, or a filter before it, will not answer this."""


class ModelDenied(ModelError, Denied):
    """The endpoint does not take the key."""


class ModelInvalid(ModelError, Invalid):
    """The endpoint does not take the request: no such model or address, or parameters it refuses."""


class AskTooLarge(ModelError, TooLarge):
    """What is asked does not fit the model's window."""
