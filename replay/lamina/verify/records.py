"""What a verification finds."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True, kw_only=True):
    """Something that is not as the rest says it must be.

    `what` is its kind: ledger.damaged, ledger.order, ledger.missing, ledger.differs, ledger.epoch, ledger.mark,
    log.missing, log.erased, event.lost, blob.missing, blob.damaged, blob.orphan, view.missing, view.stale,
    view.damaged, view.differs, file.differs, file.orphan, vectors.damaged, vectors.orphan. `where` names the file or
    table, `heal` the command that mends it; `lost` is true where something is gone for good, and the command mends
    the rest.
    """

    space: str
    what: str
    where: str
    detail: str
    heal: str = ""
    lost: bool = False


class Verified(Struct, frozen=True, kw_only=True):
    """What `lamina replay verify --json` says: everything that differs, and how much was looked at."""

    findings: tuple[Finding, ...]
    spaces: int
    events: int
    seconds: float
