"""The client: publish what happens, recall what was."""

from __future__ import annotations

from lamina.client.memory import Memory
from lamina.client.sync import SyncMemory
from lamina.records import Accepted, Degraded, Hits, Item, Part, Prompt, Stub, Where

__all__ = [
    "Accepted",
    "Degraded",
    "Hits",
    "Item",
    "Memory",
    "Part",
    "Prompt",
    "Stub",
    "SyncMemory",
    "Where",
]
