"""What the verb `replay` tells of beside what its parts do."""

from __future__ import annotations

from msgspec import Struct


class TrimmedSpace(Struct, frozen=True, kw_only=True):
    """`seq` is up to where the ledger alone holds the events of the space, `removed` how many messages went from the
    log just now; `why` says what kept the rest, where more could have gone."""

    space: str
    seq: int
    removed: int
    why: str = ""
