"""The runtime of a service: fold and decide loops, cursors, lanes and numbers. Services know none of it."""

from __future__ import annotations

from lamina.runtime.spec import (
    Add,
    Append,
    Change,
    Drop,
    DropFile,
    Due,
    Key,
    Put,
    Recorded,
    Rows,
    Service,
    Wanted,
    WriteFile,
)

__all__ = [
    "Add",
    "Append",
    "Change",
    "Drop",
    "DropFile",
    "Due",
    "Key",
    "Put",
    "Recorded",
    "Rows",
    "Service",
    "Wanted",
    "WriteFile",
]
