"""Windows: which turns are looked at together. A function of the turns of a session. Pure."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lamina.atoms.tables import CLOSED, FIRST, OPEN, SessionRow, WindowRow

GAP_US = 600 * 1_000_000
"""Neighbours whose event times lie further apart belong to two windows; a window is due this long after its last."""
TURNS = 5
MOST_EVENTS = 24
MOST_CHARS = 48_000
"""However few turns there are, tool results do not make a window larger than this."""


class Placed(Struct, frozen=True):
    """Where a turn went: its window, the one that closed because of it, and its session after it."""

    session: SessionRow
    window: WindowRow
    opened: bool
    closed: tuple[WindowRow, ...] = ()


def placed(
    session: SessionRow, window: WindowRow | None, *, new: int, speaks: bool, time_us: int, at_us: int, chars: int
) -> Placed:
    """Put a turn (`speaks`) or a tool result into the open window of its session, or into window `new`.

    A window closes after the session's first, second and fourth turn, then after every five turns of its own, and
    before a turn that lies more than 600 s from the one before it.
    """
    closed: tuple[WindowRow, ...] = ()
    if window is not None and window.state == OPEN and abs(time_us - session.last_us) > GAP_US:
        closed, window = (replace(window, state=CLOSED),), None
    opened = window is None or window.state != OPEN
    if window is None or opened:
        window = WindowRow(new, session.session)
    session = replace(session, window=window.window, turns=session.turns + speaks, last_us=time_us)
    window = replace(
        window, turns=window.turns + speaks, events=window.events + 1, chars=window.chars + chars, at_us=at_us
    )
    if _full(session, window, speaks):
        window = replace(window, state=CLOSED)
    return Placed(session, window, opened, closed)


def alone(session: str, *, new: int, at_us: int) -> WindowRow:
    """The window of a stated memory: due at once, before what is merely closed."""
    return WindowRow(new, session, state=FIRST, turns=1, events=1, at_us=at_us)


def _full(session: SessionRow, window: WindowRow, speaks: bool) -> bool:
    if window.events >= MOST_EVENTS or window.chars >= MOST_CHARS:
        return True
    return speaks and (session.turns in (1, 2, 4) or window.turns >= TURNS)
