"""Everything else, read as text: the first sentence, then names and numbers; any language."""

from __future__ import annotations

from lamina.digest.kinds.logs import TROUBLE
from lamina.digest.kinds.plan import Content, Plan, repeats


def looks(content: Content) -> bool:
    """Always: what no other kind knows is text."""
    return bool(content.text) or True


def plan(content: Content) -> Plan:
    """The first line leads; lines of trouble count more, repeats little."""
    lines = content.lines.lines
    factors = [
        0.2 if again else 2.0 if TROUBLE.search(line.body) else 1.0
        for line, again in zip(lines, repeats(lines), strict=True)
    ]
    return Plan("text", factors, [0] if lines else [])
