"""What a check finds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

State = Literal["ok", "warning", "broken"]


class Finding(Struct, frozen=True, kw_only=True):
    """`broken`: something does not work, or a promise is not kept, until the remedy is applied. A warning is less."""

    check: str
    state: State
    found: str
    remedy: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, state="ok", found=found)


def warning(check: str, found: str, remedy: str) -> Finding:
    return Finding(check=check, state="warning", found=found, remedy=remedy)


def broken(check: str, found: str, remedy: str) -> Finding:
    return Finding(check=check, state="broken", found=found, remedy=remedy)
