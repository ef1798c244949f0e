"""What is parked in the views of a home, and why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from lamina.dead.records import Dead
from lamina.errors import Invalid, LaminaError
from lamina.home import Home
from lamina.ids import untoken
from lamina.runtime.registry import fold_services
from lamina.runtime.spec import dead_id
from lamina.store.driver import connect, translated

SQL = "SELECT seq, id, type, error, raw FROM dead ORDER BY seq"


def dead(home: Home, spaces: Sequence[str]) -> Iterator[Dead]:
    """What is parked in the spaces (tokens), by space, service and position. A view that cannot be read has none:
    it is made again from the log, and parks what it must."""
    for space in spaces:
        for service in sorted(fold_services()):
            link = home.spaces / space / "views" / f"{service}.db"
            with contextlib.suppress(LaminaError, FileNotFoundError):
                yield from _of(link, untoken(space), service)


def chosen(found: Sequence[Dead], *, ids: Sequence[str], kind: str | None, every: bool) -> list[Dead]:
    """Those of `found` that are named: by id, of a kind, or all. `Invalid` where nothing is, or an id is wrong."""
    if not (ids or kind or every):
        raise Invalid("name what to settle: an ID of `lamina dead list`, --kind TYPE, or --all")
    unknown = set(ids) - {one.id for one in found}
    if unknown:
        raise Invalid(f"nothing that is parked is called {min(unknown)!r}; `lamina dead list` shows the ids")
    if kind and kind not in {one.kind for one in found}:
        kinds = ", ".join(sorted({one.kind for one in found})) or "nothing at all"
        raise Invalid(f"nothing of kind {kind!r} is parked; there is {kinds}")
    return [one for one in found if every or one.kind == kind or one.id in ids]


def _of(link: Path, space: str, service: str) -> Iterator[Dead]:
    path = link.resolve(strict=True)
    with translated(path):
        db = connect(path, readonly=True)
        try:
            for seq, id, type, error, raw in db.execute(SQL):
                yield Dead(
                    space=space,
                    service=service,
                    seq=seq,
                    id=dead_id(id, raw),
                    kind=type or "malformed",
                    error=error,
                    size_bytes=len(raw),
                )
        finally:
            db.close()
