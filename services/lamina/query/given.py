"""What sessions were given, so that it is not given again: in the memory of one query service, best effort."""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from lamina.given import Give, Given

SESSIONS = 4096
"""Of all spaces; the one used longest ago goes first."""
ITEMS = 100
"""Of a session; the one given longest ago goes first."""


class _Session(Struct):
    items: OrderedDict[str, int]
    persona: str = ""


class Ledger:
    """Of one query service."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    def give(self, space: str, request: Give) -> Given:
        """Note what a session was given now; the answer is all it was given. To ask notes nothing."""
        key = (space, request.session)
        session = self._sessions.get(key)
        if request.items or request.persona:
            if session is None:
                session = self._sessions[key] = _Session(OrderedDict())
                if len(self._sessions) > SESSIONS:
                    self._sessions.popitem(last=False)
            for id, tokens in request.items.items():
                session.items[id] = max(0, tokens)
                session.items.move_to_end(id)
            while len(session.items) > ITEMS:
                session.items.popitem(last=False)
            session.persona = request.persona or session.persona
        if session is None:
            return Given(items={})
        self._sessions.move_to_end(key)
        return Given(items=dict(session.items), persona=session.persona)
