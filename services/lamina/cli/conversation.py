"""A log as people read it: days, who spoke when, tool results folded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from lamina import ids
from lamina.cli.output import Printer, one_line
from lamina.errors import Invalid
from lamina.requests import Turn
from lamina.times import parse

TOOL_LINES = 3
STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow", "system": "bold magenta"}


def print_turns(printer: Printer, turns: Iterable[Turn], *, most_lines: int) -> None:
    """Every turn below its day and session; a text longer than `most_lines` (0: any) is cut, saying how to see it."""
    under = ("", "")
    for turn in turns:
        here = (turn.time[:10], turn.session)
        if here != under:
            if under != ("", ""):
                printer.line()
            printer.heading(f"{day_text(turn.time)} · {one_line(turn.session) or 'no session'}")
            under = here
        print_turn(printer, turn, most_lines=most_lines)


def print_turn(printer: Printer, turn: Turn, *, most_lines: int) -> None:
    """One turn: who and when, then what was said."""
    who = turn.name or turn.role
    kind = {"tool.returned": "  tool result", "memory.stated": "  to be remembered"}.get(turn.type, "")
    printer.parts(
        (clock_text(turn.time), "dim"), ("  ", ""), (one_line(who), STYLES.get(turn.role, "bold")), (kind, "dim")
    )
    tool = turn.type == "tool.returned"
    most = (min(TOOL_LINES, most_lines) if most_lines else 0) if tool else most_lines
    left = printer.block(turn.text, "       ", "dim" if tool else "", most)
    if left:
        way = f"`lamina read {ids.node_id(turn.id)}`" if tool else f"`lamina why {turn.id}`"
        printer.line(f"       … {left} more lines: {way}", "dim")


def day_text(time: str) -> str:
    """`Monday, 30 November 2026`, in the offset the time was given with."""
    when = _when(time)
    return f"{when:%A}, {when.day} {when:%B %Y}" if when else time[:10]


def clock_text(time: str) -> str:
    return time[11:16]


def moment_text(time: str) -> str:
    """`2026-11-30 09:15`."""
    return time[:16].replace("T", " ")


def utc_text(time: str) -> str:
    """`2026-11-30 00:15 UTC`, of a time in UTC: one that a view keeps without the offset it was given with."""
    return f"{moment_text(time)} UTC"


def _when(time: str) -> datetime | None:
    try:
        return parse(time)
    except Invalid:
        return None
