"""Where a memory comes from, over the views: scenario, atoms, turns; and what was made of each."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from lamina.errors import LaminaError
from lamina.query import atom_reads, persona, reads, scenarios
from lamina.query.keywords import by_event
from lamina.query.positions import Positions
from lamina.records import Link
from lamina.requests import Chain
from lamina.runtime.registry import fold_services

T = TypeVar("T")

MOST_ATOMS = 50
"""Of a scenario, the last ones are told with the turns they came from."""


async def chain(positions: Positions, space: str, id: str) -> Chain:
    """The links from `id` (of a line of the persona, a scenario, an atom or an event, a source mark, or an id of the
    caller's own) down to its events; none where nothing has this id. What cannot be read of atoms, scenarios and
    persona now is left out, so that a turn is all the same answered for."""
    line = await _of(positions, space, "persona", lambda db: persona.link(db, id))
    if line is not None:
        below = [await chain(positions, space, one) for one in line.sources]
        found = {link.id: link for one in below for link in one.links if link.id != line.id}
        return Chain(links=(line, *found.values()))
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
    lines = await _of(positions, space, "persona", lambda db: persona.made_of(db, [link.id for link in found])) or {}
    return tuple(replace(link, made=(*made.get(link.id, ()), *lines.get(link.id, ()))) for link in found)


async def _scenario(positions: Positions, space: str, id: str) -> tuple[Link, ...]:
    try:
        found = await positions.read(space, "scenarios", lambda db: scenarios.link(db, id))
    except LaminaError:
        return ()
    return (found,) if found is not None else ()


async def _of(positions: Positions, space: str, service: str, work: Callable[[sqlite3.Connection], T]) -> T | None:
    """What a view says, None while it cannot be read."""
    if service not in fold_services():
        return None
    try:
        return await positions.read(space, service, work)
    except LaminaError:
        return None


async def _with_made(positions: Positions, space: str, links: Sequence[Link]) -> tuple[Link, ...]:
    ids = [link.id for link in links]
    try:
        made = await positions.read(space, "atoms", lambda db: atom_reads.made_of(db, ids))
    except LaminaError:
        made = {}
    return tuple(replace(link, made=made.get(link.id, ())) for link in links)
