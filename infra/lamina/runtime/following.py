"""What a service would decide next in one view: for the decide loop, and for whoever waits until nothing is due."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from msgspec import Struct

from lamina.runtime.spec import Due, Service, Wanted


class Numbers(Struct, frozen=True):
    """What a view knows of the decisions of one step: the next number, and the failures made under it."""

    n: int = 1
    attempt: int = 0
    not_before_us: int = 0


class Next(Struct, frozen=True):
    """What is due (`Wanted`), will be (`Due`) or is not (None), and the numbers of its step.

    `backs_off`: it is due, and waits after a failed attempt.
    """

    wanted: Wanted | Due | None
    numbers: Numbers = Numbers()
    backs_off: bool = False


def following(service: Service[Any], db: sqlite3.Connection, state: Struct, now_us: int) -> Next:
    """What `service` wants to decide, by the state and rows of a view in one read transaction."""
    wanted = service.decide(state, now_us) if service.decide is not None else None
    if not isinstance(wanted, Wanted):
        return Next(wanted)
    numbers = _numbers(db, wanted.step)
    if numbers.not_before_us > now_us:
        return Next(Due(numbers.not_before_us), numbers, backs_off=True)
    if service.plan is not None:
        return Next(service.plan(db, wanted, now_us, numbers.attempt), numbers)
    return Next(wanted, numbers)


def due_now(service: Service[Any], db: sqlite3.Connection, now_us: int) -> bool:
    """Is a decision of `service` due in this view? One that waits after a failure is not."""
    if service.decide is None:
        return False
    row = db.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()
    state = msgspec.json.decode(row[0], type=service.state) if row else service.state()
    return isinstance(following(service, db, state, now_us).wanted, Wanted)


def _numbers(db: sqlite3.Connection, step: str) -> Numbers:
    decided = db.execute("SELECT n FROM decided WHERE step = ?", (step,)).fetchone()
    n = decided[0] + 1 if decided else 1
    failed = db.execute("SELECT attempt, not_before_us FROM failed WHERE step = ? AND n = ?", (step, n)).fetchone()
    return Numbers(n, *failed) if failed else Numbers(n)
