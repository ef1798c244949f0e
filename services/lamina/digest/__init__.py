"""From a tool result to its stub, and back: pure functions, no model, no I/O.

`stub` is what stands in a context in place of a result; `read` gives the exact text behind it.
"""

from __future__ import annotations

from lamina.digest.reading import Passage, read
from lamina.digest.stubs import binary_stub, stub

__all__ = ["Passage", "binary_stub", "read", "stub"]
