"""Letting a shadow's decisions hold: they become events of the space, numbered behind those it has.

What was extracted before is undone, and what takes its place says so: replays give the same for ever.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from lamina import events
from lamina.bus import Bus, Outgoing
from lamina.errors import Conflict, Unavailable
from lamina.events import AtomsExtracted, AtomsReconciled, Event, MemoryRederived, MemoryUndone
from lamina.home import Home
from lamina.ids import atom_id, decision_id, derived_id, event_subject, untoken, uuid7
from lamina.knowledge import Operation
from lamina.query.positions import Positions
from lamina.rederive.compare import compare, mapped
from lamina.rederive.diff import behind, corrected, standing
from lamina.rederive.records import Adopted
from lamina.rederive.run import COSTS
from lamina.rederive.shadow import Shadow, head
from lamina.store import ViewReader

BATCH = 400
BATCH_BYTES = 8 << 20
MOST_ROUNDS = 5
WAIT_S = 120.0
CORRECTED = "corrected"
RECONCILE = "atoms.reconcile"


class Renamed:
    """The ids of a shadow's decisions and atoms as they are called in the space."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def decision(self, old: str, new: str, atoms: int) -> None:
        self._ids[old] = new
        self._ids |= {atom_id(old, index): atom_id(new, index) for index in range(atoms)}

    def __call__(self, id: str) -> str:
        return self._ids.get(id, id)


def adopted(
    space: str, decided: Iterable[Event], numbers: Mapping[str, int], cause: str, now: datetime, names: Renamed
) -> list[tuple[str, Event]]:
    """The events of a shadow's decisions for the space: (its id in the shadow, the event). Pure but for `names`,
    which learns what each is called; `numbers` are the last that the space has, by step."""
    taken = dict(numbers)
    found = []
    for one in decided:
        data = events.decode_data(one)
        if not isinstance(data, AtomsExtracted | AtomsReconciled):
            continue  # a failed attempt holds nothing that could be adopted
        n = taken[data.step] = taken.get(data.step, 0) + 1
        inputs = tuple(map(names, data.inputs))
        id = decision_id(space, data.step, n, inputs)
        if isinstance(data, AtomsExtracted):
            names.decision(one.id, id, len(data.atoms))
            data = replace(data, n=n, inputs=inputs, again=True)
        else:
            ties = tuple(replace(tie, atom=names(tie.atom), target=names(tie.target)) for tie in data.operations)
            data = replace(data, n=n, inputs=inputs, operations=ties)
        found.append((one.id, events.make(data, id=id, space=space, time=now, cause=(*inputs, cause))))
    return found


async def adopt(home: Home, bus: Bus, space: str, name: str) -> Adopted:
    """Let the decisions of the shadow `name` hold in its space, and remove the shadow.

    `Conflict` where events came since it saw the log (derive again first), or another worker keeps deciding the same.
    """
    shadow = Shadow(home, space, name)
    about = shadow.about
    if await behind(bus, shadow, about.seq):
        raise Conflict(f"more was said since {name!r} saw the log; `lamina replay rederive {name}` takes it in")
    positions = Positions(bus, home)
    reader = ViewReader(shadow.view("atoms"))
    try:
        await _caught_up(positions, space, await head(bus, space))
        decisions = [events.decode(bytes(one.event)) for one in shadow.decided()]
        before = await positions.read(space, "atoms", standing)
        put_right = await positions.read(space, "atoms", corrected)
        ties = mapped(compare([*before, *put_right], await reader.read(standing)))
        undone = await positions.read(space, "atoms", _extractions)
        told = MemoryRederived(
            name=name,
            decisions=len(decisions),
            settings=about.settings,
            tokens=sum(one.tokens for one in map(events.decode_data, decisions) if isinstance(one, COSTS)),
        )
        cause = events.make(told, id=uuid7(), space=untoken(space), time=datetime.now(UTC))
        right = _put_right(space, [(one.corrected, ties[one.id]) for one in put_right if one.id in ties])
        names = await _published(bus, positions, space, [*decisions, *right], cause)
        await _undone(bus, positions, space, undone, _instead(decisions, names), cause.id)
        atoms = len(await positions.read(space, "atoms", standing))
    finally:
        await reader.close()
        await positions.close()
    await shadow.drop()
    return Adopted(
        space=untoken(space), name=name, event=cause.id, undone=len(undone), decisions=len(decisions), atoms=atoms
    )


async def _published(bus: Bus, positions: Positions, space: str, decisions: Sequence[Event], cause: Event) -> Renamed:
    """Publish the cause and the decisions; those that came second to another worker's are numbered again."""
    names = Renamed()
    first = [cause]
    waiting = list(decisions)
    for _ in range(MOST_ROUNDS):
        numbers = await positions.read(space, "atoms", _numbers)
        made = adopted(untoken(space), waiting, numbers, cause.id, datetime.now(UTC), names)
        await _said(bus, positions, space, [*first, *(event for _, event in made)])
        first = []
        refused = await positions.read(space, "atoms", _refused)
        late = {old for old, event in made if event.id in refused}
        if not late:
            return names
        waiting = [one for one in waiting if one.id in late or not late.isdisjoint(one.cause)]
    raise Conflict("another worker decides the same all the time; adopt again, and it goes on")


def _put_right(space: str, pairs: Sequence[tuple[str, str]]) -> list[Event]:
    """What people corrected stays corrected: their words stand above what says the same again."""
    if not pairs:
        return []
    ties = tuple(Operation(verb="supersede", atom=atom, target=target, reason=CORRECTED) for atom, target in pairs)
    data = AtomsReconciled(step=RECONCILE, n=1, inputs=(), rules=CORRECTED, operations=ties)
    return [events.make(data, id=uuid7(), space=untoken(space), time=datetime.now(UTC))]


def _instead(decisions: Sequence[Event], names: Renamed) -> dict[str, str]:
    """Turn -> the extraction of it that holds now."""
    found: dict[str, str] = {}
    for one in decisions:
        data = events.decode_data(one)
        if isinstance(data, AtomsExtracted):
            found |= dict.fromkeys(data.inputs, names(one.id))
    return found


async def _undone(
    bus: Bus,
    positions: Positions,
    space: str,
    before: Mapping[str, Sequence[str]],
    instead: Mapping[str, str],
    cause: str,
) -> None:
    """Undo the extractions of before. What holds instead is named as the cause: should that be forgotten with one of
    its sources, so is the undoing, and what was made of the others holds again."""
    made = []
    for id, turns in before.items():
        causes = (cause, *dict.fromkeys(instead[turn] for turn in turns if turn in instead))
        data = MemoryUndone(target=id)
        name = derived_id("rederived", cause, id)
        made.append(events.make(data, id=name, space=untoken(space), time=datetime.now(UTC), cause=causes))
    await _said(bus, positions, space, made)


async def _said(bus: Bus, positions: Positions, space: str, made: Sequence[Event]) -> None:
    """Publish events, and wait for the atoms to have taken them in."""
    seq = 0
    for batch in _batches(made):
        seq = (await bus.publish_batch([_outgoing(space, event) for event in batch])).seq
    await _caught_up(positions, space, seq)


def _outgoing(space: str, event: Event) -> Outgoing:
    return Outgoing(event_subject(space, event.type), events.encode(event), event.id)


def _batches(made: Sequence[Event]) -> Iterable[list[Event]]:
    """As many at once as the log takes: whole or not at all."""
    batch: list[Event] = []
    size = 0
    for event in made:
        if batch and (len(batch) == BATCH or size + len(event.data) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += len(event.data)
    if batch:
        yield batch


async def _caught_up(positions: Positions, space: str, seq: int) -> None:
    try:
        async with asyncio.timeout(WAIT_S):
            await positions.wait(space, "atoms", seq)
    except TimeoutError as error:
        raise Unavailable(f"atoms are not at {seq} after {WAIT_S:.0f} s; see `lamina status`") from error


def _extractions(db: sqlite3.Connection) -> dict[str, list[str]]:
    """The extractions that hold, with their turns as far as those are still theirs."""
    found: dict[str, list[str]] = {
        row[0]: []
        for row in db.execute("SELECT id FROM decisions WHERE kind = 'extract' AND undone = '' ORDER BY seq")
    }
    for id, decision in db.execute("SELECT id, decision FROM turns WHERE outcome = 1 ORDER BY seq"):
        if decision in found:
            found[decision].append(id)
    return found


def _numbers(db: sqlite3.Connection) -> dict[str, int]:
    return dict(db.execute("SELECT step, n FROM decided"))


def _refused(db: sqlite3.Connection) -> set[str]:
    return {row[0] for row in db.execute("SELECT id FROM refused")}
