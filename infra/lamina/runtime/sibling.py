"""Another service's view of the same space, read where a decision is made.

`act` alone may look: what it saw becomes part of its decision, so that fold stays a function of the log.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from lamina.errors import Transient
from lamina.runtime.apply import read_meta
from lamina.runtime.spec import NotYet
from lamina.store.driver import Damaged
from lamina.store.view import View, ViewReader

T = TypeVar("T")
WAIT_S = 1.0
LOOK_S = 0.02


async def sibling(
    view: View,
    service: str,
    work: Callable[[sqlite3.Connection], T],
    *,
    at_least: int,
    wait_s: float = WAIT_S,
) -> T:
    """`work` on the view of `service` in the space of `view`, read-only and in one read transaction, once that view
    has folded everything of this log up to `at_least`.

    It waits `wait_s` for that; then, as while the other view is missing, damaged or of another epoch of the log, it
    raises `NotYet`, and the decision is put off. Whatever `work` raises is raised.
    """
    epoch = await view.read(lambda db: read_meta(db, "epoch", None))
    until = time.monotonic() + wait_s
    reader = ViewReader(view.link.with_name(f"{service}.db"))

    def look(db: sqlite3.Connection) -> tuple[bool, T | None]:
        stands = read_meta(db, "epoch", None) == epoch and int(read_meta(db, "applied_seq", 0)) >= at_least
        return (True, work(db)) if stands else (False, None)

    try:
        while True:
            why = f"it has not folded event {at_least} yet"
            try:
                reached, found = await reader.read(look)
            except (Transient, Damaged) as error:
                reached, found, why = False, None, str(error)
            if reached:
                return found  # type: ignore[return-value]  # what `work` gave, None included
            if time.monotonic() >= until:
                raise NotYet(f"{service}: {why}")
            await asyncio.sleep(LOOK_S)
    finally:
        await reader.close()
