"""What goes with what is forgotten: every decision that was made over it, or that speaks of it. Pure.

Events are told in log order, in which whatever is made comes after what it was made of; so one pass is enough. The
rule looks at ids alone and knows no decision by its type: a service that keeps to ids is covered by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from lamina import events
from lamina.events import Event
from lamina.forget.chosen import SOURCES, TOMBSTONE, strings
from lamina.ids import atom_id, node_id

NEAR_TURNS = 4
"""So many turns after one that is forgotten may have been read together with it."""
MAX_ID_CHARS = 128
_IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-z])n[0-9a-hjkmnp-tv-z]{11}(?![0-9a-z])")


class Closure:
    """`gone` are the ids that are forgotten; the events of those that are not said already are told by `tell`."""

    def __init__(self, gone: set[str]) -> None:
        self.gone = set(gone)
        self.numbers: dict[str, int] = {}
        self._names = {name for id in gone for name in (node_id(id), atom_id(id, 0))}
        self._near: set[str] = set()
        self._turns_since: dict[str, int] = {}

    def tell(self, event: Event, chosen: bool) -> bool:
        """Is the next event of the log forgotten, because it is `chosen`, was before, or goes with what is?"""
        if event.type == TOMBSTONE:
            return False
        gone = chosen or event.id in self.gone
        if event.type in SOURCES:
            self._place(event, gone)
        elif not gone:
            gone = self._speaks_of_it(event)
        if gone:
            self.gone.add(event.id)
            self._names.update(names(event))
            self._number(event)
        return gone

    def _place(self, event: Event, gone: bool) -> None:
        """What comes soon after a turn that is forgotten may have been understood by it."""
        speaks = event.type == "turn.recorded"
        if gone and speaks:
            self._turns_since[event.session] = 0
        elif not gone and event.session in self._turns_since:
            if self._turns_since[event.session] < NEAR_TURNS:
                self._near.add(event.id)
            self._turns_since[event.session] += speaks

    def _speaks_of_it(self, event: Event) -> bool:
        said = mentioned(event)
        if not (self.gone.isdisjoint(said) and self._names.isdisjoint(said)):
            return True
        decision = events.read_decision(event)
        inputs = decision.inputs if decision is not None else ()
        return not (self._near.isdisjoint(event.cause) and self._near.isdisjoint(inputs))

    def _number(self, event: Event) -> None:
        decision = events.read_decision(event)
        if decision is not None and decision.step:
            self.numbers[decision.step] = max(decision.n, self.numbers.get(decision.step, 0))


def names(event: Event) -> Iterator[str]:
    """By which ids others may speak of an event and of what it made."""
    yield event.id
    yield node_id(event.id)
    for index in range(max(1, _made(event))):
        yield atom_id(event.id, index)


def mentioned(event: Event) -> set[str]:
    """Every id that an event may be speaking of: its causes, and whatever in its data is one or holds one."""
    found = set(event.cause)
    for text in strings(_data(event)):
        if len(text) <= MAX_ID_CHARS:
            found.add(text)
        found.update(_IDS.findall(text))
    return found


def _data(event: Event) -> Any:
    try:
        return msgspec.json.decode(event.data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return bytes(event.data).decode("utf-8", "replace")


def _made(event: Event) -> int:
    """How many things with an id of their own an event may have made."""
    data = _data(event) if event.type not in SOURCES else {}
    lists = [len(one) for one in data.values() if isinstance(one, list)] if isinstance(data, dict) else []
    return max(lists, default=0)
