"""What a correction or an undoing is about, found before it is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamina.errors import Invalid, Transient
from lamina.requests import DecisionIs, DecisionOf

if TYPE_CHECKING:
    from lamina.client.memory import Memory

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
    return links[0].id


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
