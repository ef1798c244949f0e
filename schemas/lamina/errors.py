"""The error tree. Retry policy is the one thing callers decide on, so the tree is cut along it."""

from __future__ import annotations


class LaminaError(Exception):
    """Root of every error Lamina raises on purpose. The message names the cause and the remedy."""


class Transient(LaminaError):
    """The same call may succeed later; nothing was half done."""


class Unavailable(Transient):
    """A part that must answer is not there (bus, daemon, model)."""


class Timeout(Transient):
    """A part did not answer in time; a publish may be repeated with the same id."""


class Busy(Transient):
    """A part is there but has too much to do now."""


class Permanent(LaminaError):
    """The same call will fail again: the input or the set-up must change."""


class Invalid(Permanent):
    """The input breaks the contract (type, encoding, range, unknown name, wrong configuration)."""


class TooLarge(Permanent):
    """The input is larger than its limit; the message gives both sizes in bytes."""


class Forgotten(Permanent):
    """What is asked for, or published again, was erased on request."""


class Denied(Permanent):
    """The credentials or file permissions do not allow it."""


class Conflict(LaminaError):
    """Something else stands under this id or position already."""


class Full(LaminaError):
    """A bounded store has no room; nothing was half written."""


class LogFull(Full):
    """The stream reached `max_bytes` (or its disk is full)."""


class OutboxFull(Full):
    """The client's outbox reached its limit while the bus was away."""


class DiskFull(Full):
    """The file system of the home has no room."""


class Closed(LaminaError):
    """The object was used after it was closed."""
