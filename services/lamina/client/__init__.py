"""The client: publish what happens, recall what was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamina.records import Accepted, Degraded, Hits, Item, Part, Prompt, Stub, Where

if TYPE_CHECKING:
    from lamina.client.memory import Memory
    from lamina.client.sync import SyncMemory

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


def __getattr__(name: str) -> Any:
    """The two clients, at first use: a verb that needs a connection alone starts in two thirds of the time."""
    if name == "Memory":
        from lamina.client.memory import Memory

        return Memory
    if name == "SyncMemory":
        from lamina.client.sync import SyncMemory

        return SyncMemory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
