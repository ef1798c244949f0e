"""The l2 leg: the situation that most of an answer belongs to. It takes no place that a turn or atom would have had,
unless it is asked for.

What was found votes: a turn or atom for the scenario that it is in, the more the higher it stands.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.errors import LaminaError
from lamina.ids import untoken
from lamina.query.keywords import by_event
from lamina.query.positions import Positions
from lamina.query.scenarios import info, members
from lamina.records import Degraded, Hits, Item
from lamina.requests import Recall, ScenarioInfo
from lamina.runtime.registry import fold_services
from lamina.tokens import count

LAYER = "l2"
VOTERS = 20
"""So much of an answer is asked what it belongs to, where situations alone are wanted."""
STRONG = 0.6
"""Of the votes: with as much a situation is given unasked, where there is room."""
FEW = 3
"""Votes below which nothing is strong."""
MOST_SOURCES = 50
_OF_TURN = "SELECT atoms FROM made WHERE source = ?"
_OF_ATOM = "SELECT e.scenario FROM atoms a JOIN episodes e ON e.id = a.episode WHERE a.id = ?"


class Situation(Struct, frozen=True):
    """A scenario with its share of the votes, and the events that it comes from, voters first."""

    info: ScenarioInfo
    share: float
    votes: int
    sources: tuple[str, ...]


def inner(request: Recall) -> Recall:
    """What turns and atoms are asked for: where situations alone are wanted, some to vote."""
    if not asked(request) or request.layers is None or {"l0", "l1"} & set(request.layers):
        return request
    also = ("l3",) if "l3" in request.layers else ()
    return replace(request, layers=("l0", "l1", *also), limit=max(request.limit, VOTERS))


def asked(request: Recall) -> bool:
    """Is this layer asked for by its name?"""
    return request.layers is not None and LAYER in request.layers


async def added(positions: Positions, space: str, request: Recall, hits: Hits, until_s: float) -> Hits:
    """The answer with the situation it belongs to; with situations alone, best first, where only they are wanted.
    Where they cannot be read the answer is that without them, and says so."""
    wanted = LAYER in request.layers if request.layers is not None else not request.where.types
    if hits.status != "found" or not wanted or "scenarios" not in fold_services():
        return hits
    alone = asked(request) and not {"l0", "l1"} & set(request.layers or ())
    kept = tuple(item for item in hits.items if item.layer == "l3") if alone else hits.items
    try:
        found = await positions.read(space, "scenarios", lambda db: _situations(db, hits.items), until_s=until_s)
        found = found if asked(request) else [one for one in found if one.share >= STRONG and one.votes >= FEW]
        if not found:
            return replace(hits, items=kept, status="found" if kept else "none")
        ids = tuple(dict.fromkeys(source for one in found for source in one.sources))
        turns = await positions.read(space, "journal", lambda db: by_event(db, ids), until_s=until_s)
    except LaminaError as error:
        missing = Degraded("scenarios", str(error), "see `lamina status`; the view is made again from the log")
        return replace(hits, items=kept, status="found" if kept else "none", degraded=(*hits.degraded, missing))
    turn_ids = {id: turn.turn_id for id, turn in turns.items()}
    made = [_item(one, untoken(space), turn_ids) for one in (found if alone else found[:1])]
    return replace(hits, items=_fitted(kept, made, request))


def _fitted(items: Sequence[Item], made: Sequence[Item], request: Recall) -> tuple[Item, ...]:
    """Situations after the rest, within limit and budget; asked for by name, one of them in place of the last."""
    kept = list(items[: request.limit - 1] if asked(request) else items)
    left = request.budget_tokens - sum(count(item.text) for item in kept)
    for item in made:
        left -= count(item.text)
        if len(kept) < request.limit and left >= 0:
            kept.append(item)
    return tuple(kept) if kept else tuple(items)


def _situations(db: sqlite3.Connection, items: Sequence[Item]) -> list[Situation]:
    votes: Counter[str] = Counter()
    weights: dict[str, float] = {}
    voters: dict[str, list[str]] = {}
    total = 0.0
    for rank, item in enumerate(items):
        weight = 1 / (1 + rank)
        total += weight
        for scenario in sorted(_of(db, item)):
            votes[scenario] += 1
            weights[scenario] = weights.get(scenario, 0.0) + weight
            voters.setdefault(scenario, []).extend(item.sources)
    order = sorted(weights, key=lambda one: (-weights[one], one))
    found = []
    for scenario in order:
        whole = info(db, scenario)
        if whole is not None:
            sources = dict.fromkeys((*voters[scenario], *_sources(db, scenario)))
            share = round(weights[scenario] / total, 6)
            found.append(Situation(whole, share, votes[scenario], tuple(sources)[:MOST_SOURCES]))
    return found


def _of(db: sqlite3.Connection, item: Item) -> set[str]:
    """The scenarios of an item: that of an atom, those of the atoms made of a turn."""
    atoms = [item.id]
    if item.layer == "l0":
        rows = [row for one in item.sources if (row := db.execute(_OF_TURN, (one,)).fetchone()) is not None]
        atoms = [id for row in rows for id in msgspec.json.decode(row[0], type=tuple[str, ...])]
    found = (db.execute(_OF_ATOM, (id,)).fetchone() for id in atoms)
    return {row[0] for row in found if row is not None and row[0]}


def _sources(db: sqlite3.Connection, scenario: str) -> list[str]:
    """The events behind a scenario, those of its last atoms first."""
    sources: list[str] = []
    for id in members(db, scenario)[-MOST_SOURCES:][::-1]:
        row = db.execute("SELECT sources FROM atoms WHERE id = ?", (id,)).fetchone()
        sources += msgspec.json.decode(row[0], type=tuple[str, ...])
    return sources


def _item(one: Situation, space: str, turn_ids: Mapping[str, str]) -> Item:
    about = one.info
    days = about.first[:10] if about.first[:10] == about.last[:10] else f"{about.first[:10]} to {about.last[:10]}"
    told = f"{about.title}\n{about.summary}" if about.summary else about.title
    return Item(
        layer=LAYER,
        id=about.id,
        text=f"{told}\n({days}; {about.facts} facts in {about.path})",
        score=one.share,
        parts={"share": one.share},
        time=about.last,
        space=space,
        session="",
        sources=one.sources,
        turn_ids=tuple(dict.fromkeys(id for source in one.sources if (id := turn_ids.get(source, "")))),
        note="" if about.status != "closed" else "closed",
    )
