"""What a verb is, and what it is given."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from msgspec import Struct, field

from lamina.cli.output import Printer, printable

if TYPE_CHECKING:  # loads the store, which the list of verbs does not need
    from lamina.home import Home

DONE, FAILED, USAGE = 0, 1, 2
# Legal inside JSON strings, and commands to some terminals: C1 controls, marks that turn the reading direction.
_STEERING = re.compile("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def positive(text: str) -> int:
    """The type of an option that takes a whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


class Context(Struct, frozen=True, kw_only=True):
    """What the global options say, and where to write. `json`: one document or JSON lines on `out`. `named` is false
    where no space was named and `space` is the default: verbs that look after things then mean every space.

    Nothing that is written through it can steer a terminal, whatever the memory holds.
    """

    home: Home
    space: str
    json: bool
    out: TextIO
    err: TextIO
    named: bool = True

    def document(self, value: Any) -> None:
        """Write `value` as one line of JSON."""
        text = msgspec.json.encode(value).decode()
        self.out.write(_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")
        self.out.flush()

    def line(self, text: str = "") -> None:
        self.out.write(printable(text) + "\n")
        self.out.flush()

    def note(self, text: str) -> None:
        """A word to the person on stderr, beside the answer."""
        self.err.write(printable(text) + "\n")
        self.err.flush()

    @property
    def printer(self) -> Printer:
        """For tables, headings and colour on `out`."""
        return Printer(self.out)


class Command(Struct, frozen=True, kw_only=True):
    """One verb. `run` returns the exit code; a `LaminaError` it raises is printed and gives 1.

    `help` is a line for the list of verbs; `examples` are lines of a shell session, shown under `--help`, a `# word`
    at the end of a line saying what it does. `outputs` name the type of every document that `--json` writes, by the
    words that ask for it ("show sessions"): `lamina schema` and the manual are made of them.

    The module of a verb is loaded to list it: whatever is slow to import is imported inside `run`.
    """

    name: str
    help: str
    run: Callable[[Context, argparse.Namespace], int]
    configure: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    description: str = ""
    examples: tuple[str, ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)
