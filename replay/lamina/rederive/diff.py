"""What a shadow would change: atoms with the words they came from, answers to recorded questions, what it cost."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lamina.bus import Bus
from lamina.embedding import shared
from lamina.errors import Invalid
from lamina.events import RecallAsked, decode, decode_data
from lamina.home import Home
from lamina.ids import untoken
from lamina.knowledge import Span
from lamina.query.positions import Positions
from lamina.query.recall import recall
from lamina.query.vectors import VectorLeg
from lamina.rederive.compare import Pairs, Stands, compare
from lamina.rederive.records import AtomChange, Cost, Difference, Evidence, QueryChange
from lamina.rederive.run import configured
from lamina.rederive.shadow import Shadow, head, source
from lamina.requests import Recall
from lamina.runtime.history import history

EVIDENCE_CHARS = 300
MOST_SOURCES = 3
MOST_QUERIES = 200
DEADLINE_S = 30.0
_ATOMS = "SELECT id, type, text, same, sources FROM atoms WHERE status IN ('active', 'contradicted') ORDER BY n"
_CORRECTED = """SELECT a.id, a.type, a.text, a.same, a.sources, a.by FROM atoms a JOIN atoms c ON c.id = a.by
JOIN decisions d ON d.id = c.decision WHERE a.status = 'superseded' AND d.kind = 'correct' ORDER BY a.n"""
_COST = """SELECT "by", model, count(*), coalesce(sum(tokens), 0), coalesce(sum(duration_ms), 0) FROM decisions
WHERE undone = '' AND kind IN ('extract', 'reconcile', 'failed', 'dead') GROUP BY "by", model ORDER BY 1, 2"""


class ShadowPositions(Positions):
    """The atoms of a shadow, among the other views of its space as they are."""

    def __init__(self, bus: Bus, home: Home, shadow: Shadow) -> None:
        super().__init__(bus, home)
        self._shadow = shadow

    def link(self, space: str, service: str) -> Path:
        return self._shadow.view(service) if service == "atoms" else super().link(space, service)

    async def touch(self, space: str, service: str, *, damaged: int | None = None) -> None:
        """Nobody works on it."""


async def difference(home: Home, bus: Bus, space: str, name: str) -> Difference:
    """Compare the shadow `name` with what stands. `Invalid` where there is none."""
    shadow = Shadow(home, space, name)
    about = shadow.about
    live, other = Positions(bus, home), ShadowPositions(bus, home, shadow)
    try:
        pairs = compare(await live.read(space, "atoms", standing), await other.read(space, "atoms", standing))
        ids = {span.id for one in changed_atoms(pairs) for span in one.sources}
        texts = await live.read(space, "journal", lambda db: _texts(db, ids))
        asked = await recorded(bus, shadow.root)
        queries = await _answers(home, shadow, asked, live, other)
        return Difference(
            space=untoken(space),
            name=name,
            same=len(pairs.same),
            gained=len(pairs.gained),
            lost=len(pairs.lost),
            changed=len(pairs.changed),
            atoms=_changes(pairs, texts),
            queries=tuple(one for one in queries if one.overlap < 1),
            asked=len(asked),
            before=await live.read(space, "atoms", _cost),
            after=await other.read(space, "atoms", _cost),
            behind=await behind(bus, shadow, about.seq),
        )
    finally:
        await live.close()
        await other.close()


def standing(db: sqlite3.Connection) -> list[Stands]:
    """The atoms that stand."""
    return [_atom(row) for row in db.execute(_ATOMS)]


def corrected(db: sqlite3.Connection) -> list[Stands]:
    """The atoms that a correction stands instead of."""
    return [_atom(row) for row in db.execute(_CORRECTED)]


def changed_atoms(pairs: Pairs) -> list[Stands]:
    return [*pairs.lost, *pairs.gained, *(one for pair in pairs.changed for one in pair)]


async def recorded(bus: Bus, root: Path) -> list[Recall]:
    """The recorded questions of a space, each once, the newest last."""
    found: dict[Recall, None] = {}
    until = await head(bus, root.name) + 1
    async with contextlib.aclosing(history(bus, root, after=0, until=until, name="asked")) as parts:
        async for messages in parts:
            for message in messages:
                if b'"recall.asked"' in message.data:
                    with contextlib.suppress(Invalid):
                        data = decode_data(decode(message.data))
                        if isinstance(data, RecallAsked):
                            one = Recall(
                                query=data.query, limit=data.limit, layers=data.layers or None, deadline_s=DEADLINE_S
                            )
                            found.pop(one, None)
                            found[one] = None
    return list(found)[-MOST_QUERIES:]


async def _answers(
    home: Home, shadow: Shadow, asked: Sequence[Recall], live: Positions, other: Positions
) -> list[QueryChange]:
    found = []
    legs = [
        VectorLeg(home, live, shared(configured(home, {}).embedding)),
        VectorLeg(home, other, shared(configured(home, shadow.about.settings).embedding)),
    ]
    for request in asked:
        answers = [
            await recall(positions, shadow.space, request, leg)
            for positions, leg in zip((live, other), legs, strict=True)
        ]
        before, after = ([item.text for item in hits.items] for hits in answers)
        every = set(before) | set(after)
        found.append(
            QueryChange(
                query=request.query,
                overlap=round(len(set(before) & set(after)) / len(every), 3) if every else 1.0,
                only_before=tuple(text for text in before if text not in after),
                only_after=tuple(text for text in after if text not in before),
            )
        )
    return found


def _changes(pairs: Pairs, texts: dict[str, str]) -> tuple[AtomChange, ...]:
    def evidence(one: Stands) -> tuple[Evidence, ...]:
        ids = dict.fromkeys(span.id for span in one.sources)
        return tuple(Evidence(id=id, text=texts.get(id, "")) for id in list(ids)[:MOST_SOURCES])

    return (
        *(AtomChange(what="lost", type=one.type, before=one.text, evidence=evidence(one)) for one in pairs.lost),
        *(
            AtomChange(what="changed", type=new.type, before=old.text, after=new.text, evidence=evidence(new))
            for old, new in pairs.changed
        ),
        *(AtomChange(what="gained", type=one.type, after=one.text, evidence=evidence(one)) for one in pairs.gained),
    )


def _texts(db: sqlite3.Connection, ids: set[str]) -> dict[str, str]:
    found = {}
    for id in ids:
        row = db.execute(
            "SELECT substr(t.text, 1, ?) FROM events e JOIN turns t ON t.seq = e.seq WHERE e.id = ?",
            (EVIDENCE_CHARS, id),
        ).fetchone()
        if row is not None:
            found[id] = row[0]
    return found


def _cost(db: sqlite3.Connection) -> Cost:
    rows = db.execute(_COST).fetchall()
    return Cost(
        by=tuple(f"{by} ({model})" if model else by for by, model, *_ in rows),
        decisions=sum(row[2] for row in rows),
        tokens=sum(row[3] for row in rows),
        seconds=round(sum(row[4] for row in rows) / 1000, 3),
    )


async def behind(bus: Bus, shadow: Shadow, seq: int) -> int:
    """How many sources came in behind `seq`, which the shadow saw last."""
    until = await head(bus, shadow.space) + 1
    count = 0
    async with contextlib.aclosing(history(bus, shadow.root, after=seq, until=until, name="behind")) as parts:
        async for messages in parts:
            count += sum(source(message) is not None for message in messages)
    return count


def _atom(row: tuple[str, ...]) -> Stands:
    sources = msgspec.json.decode(row[4], type=tuple[Span, ...])
    return Stands(row[0], row[1], row[2], row[3], sources, *row[5:])
