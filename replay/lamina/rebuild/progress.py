"""How far a rebuild is, and what it did."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct, field


class Progress(Struct, kw_only=True):
    """How far the rebuild of one view is; the same object is updated. `total` is about how many events there are."""

    service: str
    space: str
    total: int = 0
    events: int = 0
    resumed: int = 0
    began_s: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_s

    @property
    def rate(self) -> float:
        """Events a second, those of an interrupted run before left out."""
        return (self.events - self.resumed) / self.seconds if self.seconds else 0.0

    @property
    def eta_s(self) -> float | None:
        """Seconds still to go; None while that cannot be known."""
        return max(0, self.total - self.events) / self.rate if self.rate else None


Moved: TypeAlias = Callable[[Progress], None]


class Rebuilt(Struct, frozen=True, kw_only=True):
    """What `lamina replay rebuild --json` says of one view.

    `seq` is where it stands in the log, `events` those that were folded, `resumed` those of them that an interrupted
    run had folded before. `files` are rendered files that had to be changed, `dead` events that are parked.
    """

    service: str
    space: str
    generation: int
    seq: int
    events: int
    resumed: int
    files: int
    dead: int
    seconds: float
    rate: float


class Mended(Struct, frozen=True, kw_only=True):
    """What `lamina replay rebuild ledger --json` says of one space.

    `lines` stand in the ledger now; `files` of it had to be changed; `unreadable` lines are kept in `kept`, and what
    they held is in the new ledger where the log held it too.
    """

    space: str
    lines: int
    files: int
    unreadable: int
    kept: str
    seconds: float
