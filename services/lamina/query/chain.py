"""Where a memory comes from, over the views: scenario, atoms, turns; and what was made of each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec.structs import replace

from lamina.errors import LaminaError
from lamina.query import atom_reads, reads, scenarios
from lamina.query.keywords import by_event
from lamina.query.positions import Positions
from lamina.records import Link
from lamina.requests import Chain

MOST_ATOMS = 50
"""Of a scenario, the last ones are told with the turns they came from."""


async def chain(positions: Positions, space: str, id: str) -> Chain:
    """The links from `id` (of a scenario, an atom or an event, a source mark, or an id of the caller's own) down to
    its events; none where nothing has this id. What cannot be read of atoms and scenarios now is left out, so that a
    turn is all the same answered for."""
    heads = await _atoms(positions, space, [id])
    above = () if heads else await _scenario(positions, space, id)
    if above:
        heads = await _atoms(positions, space, above[0].sources[-MOST_ATOMS:])
    if not heads and not above:
        links = await positions.read(space, "journal", lambda db: reads.why(db, id))
        return Chain(links=await _with_made(positions, space, links))
    sources = tuple(dict.fromkeys(source for head in heads for source in head.sources))
    turns = await positions.read(space, "journal", lambda db: by_event(db, sources))
    links = tuple(map(reads.linked, turns.values()))
    known = {link.id for link in links}
    stated = {
        one: replace(head, layer="l0", id=one, sources=(one,), made=(), note="", by="")
        for head in heads
        for one in head.sources
        if one not in known
    }
    return Chain(links=(*above, *heads, *links, *stated.values()))


async def _atoms(positions: Positions, space: str, ids: Sequence[str]) -> tuple[Link, ...]:
    """These atoms, each with the scenario that it belongs to."""

    def read(db: sqlite3.Connection) -> list[Link]:
        return [link for id in ids if (link := atom_reads.link(db, id)) is not None]

    try:
        found = await positions.read(space, "atoms", read)
    except LaminaError:
        return ()
    try:
        names = [link.id for link in found]
        made = await positions.read(space, "scenarios", lambda db: scenarios.made_of(db, names)) if names else {}
    except LaminaError:
        made = {}
    return tuple(replace(link, made=made.get(link.id, ())) for link in found)


async def _scenario(positions: Positions, space: str, id: str) -> tuple[Link, ...]:
    try:
        found = await positions.read(space, "scenarios", lambda db: scenarios.link(db, id))
    except LaminaError:
        return ()
    return (found,) if found is not None else ()


async def _with_made(positions: Positions, space: str, links: Sequence[Link]) -> tuple[Link, ...]:
    ids = [link.id for link in links]
    try:
        made = await positions.read(space, "atoms", lambda db: atom_reads.made_of(db, ids))
    except LaminaError:
        made = {}
    return tuple(replace(link, made=made.get(link.id, ())) for link in links)
