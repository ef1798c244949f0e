"""What sessions were given, so that it is not given again: in the memory of one query service, best effort."""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from lamina.given import Give, Given

SESSIONS = 4096
"""Of all spaces. The space with most of them loses the one used longest ago, so that none pushes out another's."""
ITEMS = 100
"""Of a session; the one given longest ago goes first."""
MAX_NAME_CHARS = 1_000
"""Of the name of a session, as many as a client takes; what a longer one is given is not noted."""
MAX_CHARS = 200
"""Of an id, or of what tells one persona from another; a longer id is not noted."""


class _Session(Struct):
    items: OrderedDict[str, int]
    persona: str = ""


class Ledger:
    """Of one query service."""

    def __init__(self) -> None:
        self._spaces: dict[str, OrderedDict[str, _Session]] = {}
        self._sessions = 0

    def give(self, space: str, request: Give) -> Given:
        """Note what a session was given now; the answer is all it was given. To ask notes nothing."""
        sessions = self._spaces.get(space)
        session = sessions.get(request.session) if sessions is not None else None
        if (request.items or request.persona) and len(request.session) <= MAX_NAME_CHARS:
            session = session or self._new(space, request.session)
            for id, tokens in request.items.items():
                if len(id) <= MAX_CHARS:
                    session.items[id] = max(0, tokens)
                    session.items.move_to_end(id)
            while len(session.items) > ITEMS:
                session.items.popitem(last=False)
            session.persona = request.persona[:MAX_CHARS] or session.persona
        if session is None:
            return Given(items={})
        self._spaces[space].move_to_end(request.session)
        return Given(items=dict(session.items), persona=session.persona)

    def _new(self, space: str, name: str) -> _Session:
        session = self._spaces.setdefault(space, OrderedDict())[name] = _Session(OrderedDict())
        self._sessions += 1
        if self._sessions > SESSIONS:
            largest = max(self._spaces, key=lambda one: len(self._spaces[one]))
            self._spaces[largest].popitem(last=False)
            if not self._spaces[largest]:
                del self._spaces[largest]
            self._sessions -= 1
        return session
