"""Everything of a home held against everything else. Nothing is changed, and others may go on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lamina.bus import Bus
from lamina.errors import LaminaError
from lamina.home import Home
from lamina.ids import lane
from lamina.runtime.apply import read_meta
from lamina.runtime.registry import fold_services
from lamina.store.driver import connect, translated
from lamina.verify.caches import caches
from lamina.verify.ledger import Look, blobs, compare
from lamina.verify.records import Finding, Verified
from lamina.verify.views import view

JOURNAL = "journal"


async def verify(
    home: Home, bus: Bus, spaces: Sequence[str], told: Callable[[str], None] = lambda _: None
) -> Verified:
    """Hold log, ledger, blobs, views and vectors of the spaces (tokens) against one another; `told` hears of each.

    Raises as `Bus.read`; whatever is wrong with what stands on disk is a finding, never an error.
    """
    start = time.monotonic()
    findings: list[Finding] = []
    seen = 0
    for space in spaces:
        told(space)
        look = await _space(home, bus, space)
        findings += look.findings
        seen += look.events
    return Verified(
        findings=tuple(findings), spaces=len(spaces), events=seen, seconds=round(time.monotonic() - start, 3)
    )


async def _space(home: Home, bus: Bus, space: str) -> Look:
    root = home.spaces / space
    look = Look(space=space)
    await compare(bus, root, look, applied=_applied(home, bus.epoch, space))
    kept: set[str] = set()
    if look.whole:
        for service in fold_services().values():
            await view(service, bus, root, look, kept)
        await blobs(bus, root, look, kept)
    await asyncio.to_thread(caches, root, look)
    look.rest()
    return look


def _applied(home: Home, epoch: str, space: str) -> int:
    """How far the journal of a space has come, by its view or, where that is lost, by the node's index."""
    link = home.spaces / space / "views" / f"{JOURNAL}.db"
    index = home.run / f"{JOURNAL}.db"
    sql = "SELECT seq FROM lanes WHERE lane = ? AND epoch = ?"
    return max(
        _asked(link, lambda db: int(read_meta(db, "applied_seq", 0))),
        _asked(index, lambda db: int((db.execute(sql, (lane(space), epoch)).fetchone() or (0,))[0])),
    )


def _asked(link: Path, work: Callable[..., int]) -> int:
    """`work` on a database; 0 where it cannot be read."""
    if not link.exists():
        return 0
    path = link.resolve()
    try:
        with translated(path):
            db = connect(path, readonly=True)
            try:
                return work(db)
            finally:
                db.close()
    except LaminaError:
        return 0
