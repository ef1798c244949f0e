"""What a format is: a way to recognise its documents, and a reader that turns them into records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ParamSpec, Protocol

from msgspec import Struct

from lamina.errors import LaminaError
from lamina.importer.reading import Document
from lamina.importer.records import BadRecord, Item, Source

P = ParamSpec("P")


class Reader(Protocol):
    """Reads the documents of one file in order."""

    def feed(self, document: Document) -> Iterator[Item]:
        """The records of one document. Raises `Invalid` for a document that is none of this format."""
        ...

    def finish(self) -> Iterator[Item]:
        """What is left open when the file ends."""
        ...


class Format(Struct, frozen=True):
    """A format of logs. `recognises` is true for a document that is typical of it."""

    name: str
    what: str
    recognises: Callable[[Document], bool]
    reader: Callable[[str], Reader]
    """From the name a file gives to a conversation without an id (`values.stem`)."""


def guarded(source: Source, step: Callable[P, Iterator[Item]], *args: P.args, **kwargs: P.kwargs) -> Iterator[Item]:
    """The records of `step(*args)`; what it cannot read becomes a `BadRecord` at `source`, and the rest goes on."""
    try:
        yield from step(*args, **kwargs)
    except LaminaError as error:
        yield BadRecord.at(source, str(error))


def numbered(stem: str, document: Document) -> str:
    """The id of a conversation without one: the file's stem, with its number from the second on. (A file that
    grows keeps its ids, and so does one that is written in one line or in many.)"""
    return stem if document.number == 1 else f"{stem}/{document.number}"
