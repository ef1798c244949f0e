"""The bus in memory: the semantics of the port without a server, for tests and for thinking about the rest.

Everything lives in one event loop. `MemoryLog` is what connections share; each `MemoryBus` is one of them.
"""

from __future__ import annotations

from lamina.bus.memory.bus import MemoryBus
from lamina.bus.memory.log import MemoryLog

__all__ = ["MemoryBus", "MemoryLog"]
