"""What a verb is, and what it is given."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TextIO

import msgspec
from msgspec import Struct

from lamina.home import Home

DONE, FAILED, USAGE = 0, 1, 2


class Context(Struct, frozen=True, kw_only=True):
    """What the global options say, and where to write. `json`: one document or JSON lines on `out`."""

    home: Home
    space: str
    json: bool
    out: TextIO
    err: TextIO

    def document(self, value: Any) -> None:
        """Write `value` as one line of JSON."""
        self.out.write(msgspec.json.encode(value).decode() + "\n")
        self.out.flush()

    def line(self, text: str = "") -> None:
        self.out.write(text + "\n")
        self.out.flush()

    def note(self, text: str) -> None:
        """A word to the person on stderr, beside the answer."""
        self.err.write(text + "\n")
        self.err.flush()


class Command(Struct, frozen=True, kw_only=True):
    """One verb. `run` returns the exit code; a `LaminaError` it raises is printed and gives 1.

    `help` is a line for the list of verbs; `examples` are lines of a shell session, shown under `--help`.
    """

    name: str
    help: str
    run: Callable[[Context, argparse.Namespace], int]
    configure: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    description: str = ""
    examples: tuple[str, ...] = ()
