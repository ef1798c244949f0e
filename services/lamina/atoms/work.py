"""The working set of one event: the turns, windows and atoms it touches, and the counts of the space. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.atoms.graph import Graph
from lamina.atoms.tables import CLOSED, EXTRACTED, OPEN, PARKED, WAITING, TurnRow, WindowRow, got, put
from lamina.atoms.windows import GAP_US
from lamina.runtime import Change, Drop, Rows

CONTEXT_CHARS = 600
"""So much of a turn stays beside its outcome: the context of what follows it."""


class State(Struct, frozen=True):
    """What a space's windows come to, however many sessions and turns there are.

    `due` windows wait for an extraction, `open` ones may still grow; none of them is idle before `idle_us`.
    `unreconciled` extractions wait for a reconciliation. The other numbers count turns by outcome, and ids given.
    """

    windows: int = 0
    atoms: int = 0
    due: int = 0
    open: int = 0
    idle_us: int = 0
    unreconciled: int = 0
    waiting: int = 0
    extracted: int = 0
    parked: int = 0


_COUNTS = {WAITING: "waiting", EXTRACTED: "extracted", PARKED: "parked"}


class Work:
    """Reads rows once, shows its own changes, gives them back in the end. `state` is the space's after them."""

    def __init__(self, state: State, rows: Rows) -> None:
        self.state = state
        self.rows = rows
        self.graph = Graph(rows)
        self.others: list[Change] = []
        self._turns: dict[str, TurnRow | None] = {}
        self._windows: dict[int, WindowRow | None] = {}
        self._changed: set[str] = set()

    def turn(self, id: str) -> TurnRow | None:
        if id not in self._turns:
            self._turns[id] = got(self.rows, TurnRow, id)
        return self._turns[id]

    def is_new(self, id: str) -> bool:
        """Was no turn of this id seen before?"""
        return self.turn(id) is None

    def put(self, turn: TurnRow) -> None:
        """A turn as it is from now on; what its outcome was before counts no more."""
        before = self.turn(turn.id)
        if before is not None:
            self._count(before.outcome, -1)
            if before.outcome == WAITING and turn.outcome != WAITING:
                self._leave(before)
        self._count(turn.outcome, +1)
        self._turns[turn.id] = turn
        self._changed.add(turn.id)

    def drop(self, turn: TurnRow) -> None:
        self._count(turn.outcome, -1)
        if turn.outcome == WAITING:
            self._leave(turn)
        self._turns[turn.id] = None
        self._changed.add(turn.id)

    def decided(self, turn: TurnRow, outcome: int, decision: str) -> None:
        """The outcome of a turn that waited. One that is parked may be tried again, so its text stays whole."""
        text = turn.text if outcome == PARKED else turn.text[:CONTEXT_CHARS]
        self.put(replace(turn, outcome=outcome, decision=decision, text=text))

    def waits_again(self, turns: Sequence[TurnRow], at_us: int) -> None:
        """Turns that were parked, in windows of their own that are due, one for each window they were in."""
        for old in dict.fromkeys(turn.window for turn in turns):
            these = [turn for turn in turns if turn.window == old]
            number = self.state.windows + 1
            chars = sum(len(turn.text) for turn in these)
            spoken = sum(turn.kind != "tool" for turn in these)
            window = WindowRow(number, these[0].session, CLOSED, spoken, len(these), chars, at_us)
            self.state = replace(self.state, windows=number)
            self.put_window(window)
            for turn in these:
                self.put(replace(turn, window=number, outcome=WAITING, decision=""))

    def window(self, number: int) -> WindowRow | None:
        if number not in self._windows:
            self._windows[number] = got(self.rows, WindowRow, number)
        return self._windows[number]

    def put_window(self, window: WindowRow) -> None:
        """A window as it is from now on; one without turns is gone."""
        before = self.window(window.window)
        if before is not None:
            self._count_window(before, -1)
        kept = window if window.events > 0 else None
        if kept is not None:
            self._count_window(kept, +1)
        self._windows[window.window] = kept

    def changes(self) -> list[Change]:
        made: list[Change] = []
        for id in sorted(self._changed):
            turn = self._turns[id]
            made.append(put(turn) if turn is not None else Drop("turns", (id,)))
        for number, window in self._windows.items():
            made.append(put(window) if window is not None else Drop("windows", (number,)))
        return [*made, *self.graph.changes(), *self.others]

    def _leave(self, turn: TurnRow) -> None:
        window = self.window(turn.window)
        if window is not None:
            self.put_window(replace(window, events=window.events - 1))

    def _count(self, outcome: int, by: int) -> None:
        name = _COUNTS[outcome]
        self.state = replace(self.state, **{name: getattr(self.state, name) + by})

    def _count_window(self, window: WindowRow, by: int) -> None:
        if window.state == OPEN:
            first = by > 0 and not self.state.open
            idle_us = window.at_us + GAP_US if first else self.state.idle_us
            self.state = replace(self.state, open=self.state.open + by, idle_us=idle_us)
        else:
            self.state = replace(self.state, due=self.state.due + by)


def closed(window: WindowRow) -> WindowRow:
    return replace(window, state=CLOSED)
