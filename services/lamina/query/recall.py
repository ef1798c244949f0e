"""Recall: one deadline over everything, three answers, and every missing part named."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from lamina.errors import Invalid, LaminaError
from lamina.ids import untoken
from lamina.query import persona, situations
from lamina.query.atoms import AtomsFound
from lamina.query.atoms import search as atoms_search
from lamina.query.atoms import wanted as atoms_where
from lamina.query.atoms import without as turns_where
from lamina.query.hybrid import hybrid
from lamina.query.keywords import Ranking, by_event, found, search
from lamina.query.layers import Place, alone, turns_wanted, woven
from lamina.query.persona import Known, with_lines
from lamina.query.positions import Positions
from lamina.query.vectors import Near, VectorLeg
from lamina.records import LAYERS, Degraded, Hits, Item, Where
from lamina.requests import MAX_LIMIT, MAX_QUERY_CHARS, Recall
from lamina.runtime.apply import read_meta
from lamina.runtime.registry import fold_services
from lamina.tokens import count

MIN_TOKENS = 16
MAX_DEADLINE_S = 60.0
WAIT_SHARE = 0.7
"""Of the deadline, how much may pass in waiting for `min_seq` or for a view; the rest is for the search."""
VECTOR_SHARE = 0.5
"""Of the deadline, how much the vector leg may take."""
LACKING_SHARE = 0.02
"""Of the texts, how many may wait for their vector without a word: the newest always do for a moment."""
CUT = " […]"
MAX_ANSWER_BYTES = 600_000
"""What one answer of the bus can carry, with room for the last item."""


def checked(request: Recall) -> Recall:
    """The request as it will be answered; `Invalid` for what has no meaning."""
    if request.limit < 1 or request.limit > MAX_LIMIT:
        raise Invalid(f"limit must be 1 to {MAX_LIMIT}, not {request.limit}")
    if request.budget_tokens < MIN_TOKENS:
        raise Invalid(f"budget_tokens must be at least {MIN_TOKENS}, not {request.budget_tokens}")
    if not 0 < request.deadline_s <= MAX_DEADLINE_S:
        raise Invalid(f"deadline_s must be above 0 and at most {MAX_DEADLINE_S:.0f}, not {request.deadline_s}")
    if request.now is not None and request.now.utcoffset() is None:
        raise Invalid(f"now {request.now.isoformat()} has no UTC offset; give one")
    unknown = sorted(set(request.layers or ()) - set(LAYERS))
    if unknown:
        raise Invalid(f"unknown layer {unknown[0]!r}; there are: {', '.join(LAYERS)}")
    return request


async def recall(positions: Positions, space: str, request: Recall, vectors: VectorLeg | None = None) -> Hits:
    """Answer within `deadline_s`, with what there is by then. Raises `Invalid` alone.

    The vector leg has half of that: what it does not give by then is said in `degraded`, keywords answer alone.
    """
    until_s = time.monotonic() + checked(request).deadline_s
    hits = await _recall(positions, space, situations.inner(request), vectors)
    return await situations.added(positions, space, request, hits, until_s)


async def _recall(positions: Positions, space: str, request: Recall, vectors: VectorLeg | None) -> Hits:
    """The answer of turns and atoms."""
    started = time.monotonic()
    until_s = started + checked(request).deadline_s
    degraded: list[Degraded] = []
    try:
        head = await positions.head(space, max(0.01, until_s - time.monotonic()))
        if request.min_seq > head:
            why = f"min_seq {request.min_seq} is beyond the log's end {head} for this space"
            degraded.append(Degraded("log", why, "give the seq of an Accepted of this space"))
        if head == 0:
            return Hits(status="none", degraded=tuple(degraded))
        floor = max(1, min(request.min_seq, head))
        await _reach(positions, space, floor, started + WAIT_SHARE * request.deadline_s, degraded)

        query = request.query[:MAX_QUERY_CHARS]
        async with asyncio.timeout(until_s - time.monotonic()):
            known = await _persona(positions, space, until_s, degraded)
            atoms = await _atoms(positions, space, query, request, until_s, degraded)
            if not _asks(request, "l0"):
                places, as_of = await _atoms_alone(positions, space, atoms, until_s)
                return _hits(places, request, space, degraded, as_of, head, positions.epoch, known)
            leg = asyncio.create_task(_near(vectors, space, query, started + VECTOR_SHARE * request.deadline_s))
            try:
                as_of, ranking = await positions.read(
                    space, "journal", lambda db: _keywords(db, query, request), until_s=until_s
                )
                near, missing = await leg
            finally:
                leg.cancel()
            degraded.extend(missing)
            places = await positions.read(
                space, "journal", lambda db: _places(db, ranking, near, query, request, atoms), until_s=until_s
            )
    except TimeoutError:
        why = f"the keyword search did not end within {request.deadline_s} s"
        return unavailable(degraded, "keywords", why, "ask again with a longer deadline_s or fewer words")
    except LaminaError as error:
        return unavailable(degraded, "journal", str(error), "see `lamina status`; views are made again from the log")
    return _hits(places, request, space, degraded, as_of, head, positions.epoch, known)


def _hits(
    places: Sequence[Place],
    request: Recall,
    space: str,
    degraded: Sequence[Degraded],
    as_of: int,
    head: int,
    epoch: str,
    known: Known,
) -> Hits:
    items = _items(places, untoken(space), request)
    if request.layers is not None and "l3" in request.layers:
        items = with_lines(items, known.lines, request, untoken(space))
    return Hits(
        status="found" if items else "none",
        items=items,
        persona=known.text,
        degraded=tuple(degraded),
        as_of_seq=as_of,
        epoch=epoch,
        lag={"journal": max(0, head - as_of)},
    )


def _asks(request: Recall, layer: str) -> bool:
    """Is this layer asked for, and something of it by the types that are asked for?"""
    if request.layers is not None and layer not in request.layers:
        return False
    return (atoms_where if layer == "l1" else turns_where)(request.where) is not None


async def _persona(positions: Positions, space: str, until_s: float, degraded: list[Degraded]) -> Known:
    """What is always known of the user; where it cannot be read the answer says so."""
    if "persona" not in fold_services():
        return Known()
    try:
        return await positions.read(space, "persona", persona.known, until_s=until_s)
    except LaminaError as error:
        degraded.append(Degraded("persona", str(error), "see `lamina status`; the view is made again from the log"))
        return Known()


async def _atoms(
    positions: Positions, space: str, query: str, request: Recall, until_s: float, degraded: list[Degraded]
) -> AtomsFound:
    """The l1 leg; where it cannot be asked the answer is that of the turns, and says so."""
    where = atoms_where(request.where)
    if where is None or not _asks(request, "l1") or "atoms" not in fold_services():
        return AtomsFound()
    try:
        return await positions.read(space, "atoms", lambda db: atoms_search(db, query, where), until_s=until_s)
    except LaminaError as error:
        degraded.append(Degraded("atoms", str(error), "see `lamina status`; the view is made again from the log"))
        return AtomsFound()


async def _atoms_alone(
    positions: Positions, space: str, atoms: AtomsFound, until_s: float
) -> tuple[Sequence[Place], int]:
    def read(db: sqlite3.Connection) -> tuple[Sequence[Place], int]:
        return alone(atoms, by_event(db, turns_wanted((), atoms))), int(read_meta(db, "applied_seq", 0))

    return await positions.read(space, "journal", read, until_s=until_s)


def _keywords(db: sqlite3.Connection, query: str, request: Recall) -> tuple[int, Ranking]:
    return int(read_meta(db, "applied_seq", 0)), search(
        db, query, turns_where(request.where) or Where(), _pool(request), request.now or datetime.now(UTC)
    )


def _places(
    db: sqlite3.Connection, ranking: Ranking, near: Near | None, query: str, request: Recall, atoms: AtomsFound
) -> Sequence[Place]:
    where = turns_where(request.where) or Where()
    most = _pool(request)
    ranked = ranking.ranked if near is None else hybrid(db, ranking, near, query, where, most, request.limit)
    turns = found(db, ranked[:most])
    return woven(turns, atoms, by_event(db, turns_wanted(turns, atoms)))


async def _near(
    vectors: VectorLeg | None, space: str, query: str, until_s: float
) -> tuple[Near | None, Sequence[Degraded]]:
    """What the vector leg gives until then, and what it is missing. No source at all is no fault."""
    if vectors is None or vectors.embedding.off or not query.strip():
        return None, ()
    remedy = "see `lamina status`; answers are by keywords until then"
    try:
        async with asyncio.timeout(max(0.0, until_s - time.monotonic())):
            near = await vectors.near(space, query)
    except TimeoutError:
        return None, (Degraded("vectors", "the question was not embedded in time", "ask with a longer deadline_s"),)
    except LaminaError as error:
        return None, (Degraded("vectors", str(error), remedy),)
    lacking = near.texts - len(near.cosines)
    if lacking > near.texts * LACKING_SHARE:
        return near, (Degraded("vectors", f"{lacking} of {near.texts} texts have no vector yet", remedy),)
    return near, ()


def unavailable(degraded: list[Degraded], part: str, why: str, remedy: str) -> Hits:
    """The third answer: what is missing, why, and what to do."""
    return Hits(status="unavailable", degraded=(*degraded, Degraded(part, why, remedy)))


async def _reach(positions: Positions, space: str, seq: int, until_s: float, degraded: list[Degraded]) -> None:
    """Wait for the journal to be at `seq`; where it does not get there, say so and go on."""
    looked = False
    try:
        async with asyncio.timeout(max(0.0, until_s - time.monotonic())):
            at = await positions.seq(space, "journal")
            looked = True
            if at < seq:
                await positions.wait(space, "journal", seq)
    except TimeoutError:
        if not looked:
            why = f"its view was not looked at in time; {seq} was asked for"
            degraded.append(Degraded("journal", why, "ask again with a longer deadline_s"))
            return
        at = await positions.seq(space, "journal")
        if at < seq:
            why = f"its view is at {at}, {seq} was asked for"
            degraded.append(Degraded("journal", why, "ask again; see `lamina status` if it does not move"))


def _pool(request: Recall) -> int:
    """More than the limit, so that one too long for the rest of the budget makes room for a shorter one."""
    return 2 * request.limit


def _items(places: Sequence[Place], space: str, request: Recall) -> tuple[Item, ...]:
    """The best that fit the limit and the budget; a first one too long for all of it is cut, and marked so."""
    items: list[Item] = []
    left = request.budget_tokens
    room = MAX_ANSWER_BYTES
    for one in places:
        if len(items) == request.limit or left < MIN_TOKENS:
            break
        whole = one.atom.text if one.atom is not None else one.turns[0].text
        text, size = whole, count(whole)
        if size > left or len(text.encode()) > room:
            if items:
                continue
            text = text[: max(1, min(len(text) * left // (size + 1), room // 4) - len(CUT))] + CUT
            size = min(size, left)
        left -= size
        room -= len(text.encode())
        items.append(_item(one, text, space))
    return tuple(items)


def _item(place: Place, text: str, space: str) -> Item:
    first = place.turns[0] if place.turns else None
    atom = place.atom
    return Item(
        layer="l0" if atom is None else "l1",
        id=atom.id if atom is not None else first.id if first is not None else "",
        text=text,
        score=place.score,
        parts=dict(place.parts),
        time=atom.time if atom is not None else first.time if first is not None else "",
        space=space,
        session=atom.session if atom is not None else first.session if first is not None else "",
        role=first.role if first is not None else "",
        name=first.name if first is not None else "",
        sources=tuple(turn.id for turn in place.turns) if atom is None else atom.sources,
        turn_ids=tuple(turn.turn_id for turn in place.turns if turn.turn_id),
        type=atom.type if atom is not None else "",
        note=place.note,
    )
