"""Import real logs: find the format by content, read turns and tool calls with their own times and ids.

The pure part (`open_log`, `detect`) knows nothing of the bus; publishing is apart from it.
"""

from __future__ import annotations

from lamina.importer.formats import FORMATS
from lamina.importer.log import Log, detect, open_log
from lamina.importer.records import BadRecord, Call, Item, Part, Record, SessionEnd, Skipped, Source, Turn

__all__ = [
    "FORMATS",
    "BadRecord",
    "Call",
    "Item",
    "Log",
    "Part",
    "Record",
    "SessionEnd",
    "Skipped",
    "Source",
    "Turn",
    "detect",
    "open_log",
]
