"""Open a log of any known format and read its records."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from lamina.errors import Denied, Invalid
from lamina.importer import values
from lamina.importer.formats import FORMATS
from lamina.importer.formats.base import Format, guarded
from lamina.importer.reading import Document, chained, documents, opened
from lamina.importer.records import BadRecord, Call, Item, Skipped, Turn
from lamina.text import injected

_SAMPLE = 50
"""Documents looked at to find the format; a transcript may begin with lines of bookkeeping."""
_SAMPLE_BYTES = 4 * 1024 * 1024


class Log(Iterator[Item]):
    """The records of one log, in its order. The file is closed at the end, by `close` or by leaving `with`.

    `file` is what it was opened as, `format` its format, `size_bytes` the size of the file as stored (None for
    standard input), `position_bytes` how far it was read.
    """

    def __init__(self, raw: io.RawIOBase, file: str, format: str = "auto", *, owned: bool = True) -> None:
        self.file = file
        self._raw = raw
        self._owned = owned
        self.size_bytes = os.fstat(raw.fileno()).st_size if owned else None
        self._stream = opened(raw)  # held: a reader that is collected closes the file under it
        found = documents(self._stream, file)
        looked: list[Document | BadRecord] = []
        if format == "auto":
            looked = _sample(found)
            chosen = _choose(looked, file)
        else:
            chosen = by_name(format)
        self.format = chosen.name
        self._items = _items(chained(looked, found), chosen, file)

    @property
    def position_bytes(self) -> int:
        """Bytes of the file read so far, compressed ones where it is compressed."""
        return self._raw.tell() if self._owned and not self._raw.closed else self.size_bytes or 0

    def __iter__(self) -> Log:
        return self

    def __next__(self) -> Item:
        item = next(self._items, None)
        if item is None:
            self.close()
            raise StopIteration
        return item

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._owned:
            self._stream.close()
            self._raw.close()


def open_log(path: str | Path, format: str = "auto") -> Log:
    """The records of the log at `path`; `-` is standard input. gzip is found by content, and so is the format.

    What cannot be read as a record comes as a `BadRecord` in its place and the rest goes on. Texts that memory
    itself injected are cut out; a turn without text and parts is `Skipped`. Raises `Invalid` where there is
    no such file or no known format in it, `Denied` where it may not be read.
    """
    file = str(path)
    if file == "-":
        return Log(io.FileIO(sys.stdin.fileno(), closefd=False), file, format, owned=False)
    try:
        raw = Path(path).open("rb", buffering=0)  # noqa: SIM115  the Log owns and closes it
    except PermissionError as error:
        raise Denied(f"{file} may not be read: {error.strerror}") from error
    except IsADirectoryError as error:
        raise Invalid(f"{file} is a folder; name the files in it") from error
    except OSError as error:
        raise Invalid(f"{file} cannot be opened: {error.strerror}") from error
    except ValueError as error:  # a NUL in the name
        raise Invalid(f"{file!r} is no name of a file: {error}") from error
    try:
        return Log(raw, file, format)
    except BaseException:
        raw.close()
        raise


def detect(path: str | Path) -> str:
    """The name of the format of the log at `path`, by its content alone; raises as `open_log` does."""
    with open_log(path) as log:
        return log.format


def by_name(name: str) -> Format:
    """The format of that name; `Invalid` names those there are."""
    chosen = FORMATS.get(name)
    if chosen is None:
        raise Invalid(f"format {name!r} is unknown; there are auto, {', '.join(FORMATS)}")
    return chosen


def _sample(found: Iterator[Document | BadRecord]) -> list[Document | BadRecord]:
    looked: list[Document | BadRecord] = []
    size_bytes = 0
    for item in found:
        looked.append(item)
        size_bytes += item.size_bytes if isinstance(item, Document) else 0
        if len(looked) >= _SAMPLE or size_bytes >= _SAMPLE_BYTES:
            break
    return looked


def _choose(looked: list[Document | BadRecord], file: str) -> Format:
    for format in FORMATS.values():
        if any(isinstance(item, Document) and format.recognises(item) for item in looked):
            return format
    known = ", ".join(FORMATS)
    bad = next((item for item in looked if isinstance(item, BadRecord)), None)
    if bad is not None:
        raise Invalid(f"{bad}; if the log is of a known format, name it with --format ({known})")
    if not looked:
        raise Invalid(f"{file} is empty")
    raise Invalid(f"{file} is of no known format; known are {known}")


def _items(found: Iterator[Document | BadRecord], format: Format, file: str) -> Iterator[Item]:
    reader = format.reader(values.stem(file))
    for document in found:
        if isinstance(document, BadRecord):
            yield document
            continue
        for item in guarded(document.source, reader.feed, document):
            yield _settled(item)
    for item in reader.finish():
        yield _settled(item)


def _settled(item: Item) -> Item:
    """What holds for every format: injected memory is cut, empty turns are skipped, long names are bounded."""
    if isinstance(item, Skipped | BadRecord):
        return item
    changed = {}
    for key in ("session", "agent", "project"):
        name = getattr(item, key)
        bounded = values.bounded(name)
        if bounded != name:
            changed[key] = bounded
    if isinstance(item, Turn):
        text = injected.cut(item.text)
        if not text.strip() and not item.parts:
            return Skipped(item.source, "memory's own words" if item.text.strip() else "a turn without text")
        if text != item.text:
            changed["text"] = text
    elif isinstance(item, Call):
        changed["result"] = injected.cut(item.result)
    return replace(item, **changed) if changed else item
