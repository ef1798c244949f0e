"""Where a memory comes from, over the views: an atom down to its turns; a turn, and what was made of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lamina.errors import LaminaError
from lamina.query import atom_reads, reads
from lamina.query.keywords import by_event
from lamina.query.positions import Positions
from lamina.records import Link
from lamina.requests import Chain


async def chain(positions: Positions, space: str, id: str) -> Chain:
    """The links from `id` (of an atom or an event, or an id of the caller's own) down to its events; none where
    nothing has this id. While there are no atoms to be read, a turn is all the same answered for."""
    try:
        head = await positions.read(space, "atoms", lambda db: atom_reads.link(db, id))
    except LaminaError:
        head = None
    if head is None:
        links = await positions.read(space, "journal", lambda db: reads.why(db, id))
        return Chain(links=await _with_made(positions, space, links))
    sources = head.sources
    turns = await positions.read(space, "journal", lambda db: by_event(db, sources))
    links = tuple(map(reads.linked, turns.values()))
    known = {link.id for link in links}
    stated = [
        replace(head, layer="l0", id=one, sources=(one,), note="", by="") for one in head.sources if one not in known
    ]
    return Chain(links=(head, *links, *stated))


async def _with_made(positions: Positions, space: str, links: Sequence[Link]) -> tuple[Link, ...]:
    ids = [link.id for link in links]
    try:
        made = await positions.read(space, "atoms", lambda db: atom_reads.made_of(db, ids))
    except LaminaError:
        made = {}
    return tuple(replace(link, made=made.get(link.id, ())) for link in links)
