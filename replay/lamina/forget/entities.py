"""What atoms were made of that name what is to be forgotten: a source may say it in other words than its atom."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lamina.forget.chosen import patterns, plain
from lamina.knowledge import Span
from lamina.requests import Forget
from lamina.store.driver import connect, translated

_SQL = "SELECT text, subject, value, entities, sources FROM atoms"


def made_of(root: Path, request: Forget) -> frozenset[str]:
    """The ids of the sources of every atom that one of the request's texts or names stands in."""
    wanted = patterns(request)
    link = root / "views" / "atoms.db"
    if not wanted or not link.exists():
        return frozenset()
    path = link.resolve()
    found: set[str] = set()
    with translated(path):
        db = connect(path, readonly=True)
        try:
            for *texts, sources in db.execute(_SQL):
                said = [plain(text) for text in texts]
                if any(one.search(text) for one in wanted for text in said):
                    found.update(span.id for span in msgspec.json.decode(sources, type=tuple[Span, ...]))
        finally:
            db.close()
    return frozenset(found)
