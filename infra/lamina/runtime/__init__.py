"""The runtime of a service: fold and decide loops, cursors, lanes and numbers. Services know none of it."""

from __future__ import annotations

from lamina.runtime.spec import (
    Add,
    Append,
    Base,
    Change,
    Drop,
    DropFile,
    Due,
    Editing,
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
    "Base",
    "Change",
    "Drop",
    "DropFile",
    "Due",
    "Editing",
    "Key",
    "Put",
    "Recorded",
    "Rows",
    "Service",
    "Wanted",
    "WriteFile",
]
