"""What a correction, an undoing or an id of the caller's is about, found before it is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.client.link import conflict
from lamina.errors import Forgotten, Invalid, Transient
from lamina.events import Event
from lamina.records import Accepted
from lamina.requests import DecisionIs, DecisionOf, Known, KnownIds

if TYPE_CHECKING:
    from lamina.client.memory import Memory

ASK_S = 0.5
"""How long a publish with an id of the caller's waits to learn whether that id is known already."""
FOLD_S = 5.0
"""So long a memory that is not known yet may take to be folded: it may have been published just now."""
_ATTEMPTS = ("failed", "dead")


async def corrigible(memory: Memory, id: str) -> str:
    """The id of the memory that is meant: an item's own, or that of the turn with this `turn_id`. `Invalid` where
    there is none; the id itself while nobody can be asked."""
    try:
        links = await memory.why(id)
        if not links:
            await memory.settled(FOLD_S)
            links = await memory.why(id)
    except Transient:
        return id
    if not links:
        raise Invalid(f"no memory of space {memory.space!r} has the id {id!r}; recall gives ids")
    # A line of the persona says what an atom says; one that a person wrote is changed in the file.
    return next((link.id for link in links if link.layer != "l3"), links[0].id)


async def already(memory: Memory, event: Event) -> Accepted | None:
    """An id of the caller's that the space knows: the first event's position, or `Conflict`, or `Forgotten`.

    Where the query service does not answer at once the log decides: views keep the first of an id.
    """
    try:
        found = (await memory.ask("known", Known(ids=(event.id,)), KnownIds, ASK_S)).ids.get(event.id)
    except Transient:
        return None
    if found is None:
        return None
    seq, sha256 = found
    if not sha256:
        raise Forgotten(f"{event.type} {event.id} was erased on request: give it another id to have it remembered")
    if sha256 != event.sha256:
        raise conflict(event)
    return Accepted(event.id, seq)


async def undoable(memory: Memory, id: str) -> str:
    """The id of the decision that is meant: its own, or of the one that made the atom `id`. `Invalid` where there
    is none or it is undone already."""
    if not isinstance(id, str) or not id:
        raise Invalid("id must be the id of a decision or of an atom")
    found = await memory.ask("decision", DecisionOf(id=id), DecisionIs)
    if not found.id or found.kind in _ATTEMPTS:
        raise Invalid(f"no decision and no atom of space {memory.space!r} has the id {id!r}; `lamina why` names them")
    if found.undone:
        raise Invalid(f"the decision {found.id} is undone already")
    return found.id
