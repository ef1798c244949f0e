"""From bytes to JSON documents: lines or one whole document, gzip or not, each with its place.

Formats of one document a line are read in constant memory. A whole document (a JSON list, or an object over
many lines) is held once as bytes; the elements of a list are decoded one by one.
"""

from __future__ import annotations

import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from lamina.errors import Invalid
from lamina.importer.records import BadRecord, Json, Source

MAX_LINE_BYTES = 256 * 1024 * 1024
MAX_DOCUMENT_BYTES = 1024 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_LOOKED_AT = 1000
_FOREIGN = {
    b"PK\x03\x04": "a zip archive: unpack it and import the file inside (conversations.json)",
    b"\x28\xb5\x2f\xfd": "zstd: decompress it first",
    b"\xfd7zXZ": "xz: decompress it first",
    b"BZh": "bzip2: decompress it first",
    b"\xff\xfe": "UTF-16: convert it to UTF-8 first",
    b"\xfe\xff": "UTF-16: convert it to UTF-8 first",
    b"SQLite format 3\x00": "an SQLite database, not a log",
}
_LONE = re.compile(rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F])")
_OPENING = re.compile(rb"\s*[\[{]\s*\n")
_BETWEEN = re.compile(rb"[\s,]*")

Damage = (EOFError, gzip.BadGzipFile, zlib.error)
"""What a gzip stream that is cut short or changed raises."""


class Document(Struct, frozen=True, gc=False):
    """One JSON value and where it stands. `number` tells documents of a file apart, from 1: the line where
    each line is a document, the position in a list, 1 for a file that is one document."""

    value: Json
    source: Source
    number: int
    kind: Literal["line", "element", "whole"]
    size_bytes: int = 0


def opened(raw: io.RawIOBase) -> io.BufferedIOBase:
    """`raw`, unpacked while it is read where it is gzip (by its first bytes); `Invalid` for what is no text."""
    stream: io.BufferedIOBase
    stream = buffered = io.BufferedReader(raw)
    head = buffered.peek(16)[:16]
    if head.startswith(b"\x1f\x8b"):
        stream = unpacked = gzip.GzipFile(fileobj=buffered)
        try:
            head = unpacked.peek(16)[:16]
        except Damage as error:
            raise Invalid(f"this is gzip, damaged from its first bytes on: {error}") from error
    for magic, remedy in _FOREIGN.items():
        if head.startswith(magic):
            raise Invalid(f"this is {remedy}")
    return stream


def decode(raw: bytes | memoryview | msgspec.Raw) -> Json:
    """The JSON value of `raw`; `Invalid` says what is wrong with it."""
    try:
        value: Json = msgspec.json.decode(raw)
    except RecursionError as error:
        raise Invalid("nested too deeply") from error
    except (msgspec.DecodeError, UnicodeError, ValueError) as error:
        if _LONE.search(bytes(raw)):
            raise Invalid("a string holds a lone surrogate (half of a character)") from error
        raise Invalid(f"not JSON: {error}") from error
    return value


def documents(
    stream: io.BufferedIOBase,
    file: str,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
) -> Iterator[Document | BadRecord]:
    """The documents of an opened stream in order, and a `BadRecord` for each that cannot be read.

    Line by line if the first line is a document of its own (a list alone in its line is a list of documents);
    otherwise the file is one document. Blank lines, CRLF and a byte order mark are allowed.
    """
    lines = _Lines(stream, file, max_line_bytes, max_document_bytes)
    try:
        yield from _split(lines)
    except Damage as error:
        yield BadRecord(file, lines.number + 1, f"the gzip stream is damaged or cut short here: {error}")


class _Lines:
    """Non-blank lines with their numbers; a line above the limit is a `BadRecord` and is not kept."""

    def __init__(self, stream: io.BufferedIOBase, file: str, max_line_bytes: int, max_document_bytes: int) -> None:
        self.stream = stream
        self.file = file
        self.number = 0
        self.max_document_bytes = max_document_bytes
        self._limit = max_document_bytes  # the first line may be the whole document
        self._rest_limit = max_line_bytes

    def __iter__(self) -> Iterator[bytes | BadRecord]:
        while line := self.stream.readline(self._limit + 1):
            self.number += 1
            if len(line) > self._limit and not line.endswith(b"\n"):
                yield BadRecord(self.file, self.number, f"a line of more than {self._limit} bytes")
                while line and not line.endswith(b"\n"):
                    line = self.stream.readline(_CHUNK_BYTES)
                continue
            if self.number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                self._limit = self._rest_limit
                yield line

    def source(self) -> Source:
        return Source(self.file, self.number)


def _split(lines: _Lines) -> Iterator[Document | BadRecord]:
    it = iter(lines)
    first = next(it, None)
    while isinstance(first, BadRecord):
        yield first
        first = next(it, None)
    if first is None:
        return
    start = lines.source()
    elements, why = _try_list(first)
    second: bytes | BadRecord | None = None
    if elements is not None or _unfinished(why):
        second = next(it, None)
        if elements is not None and second is None:
            yield from _elements(first, elements, start)
            return
        if elements is None and isinstance(second, bytes) and not isinstance(_try(second)[0], dict):
            yield from _whole(lines, first + second, start)
            return
    yield _document(first, start, start.line)
    if second is not None:
        yield from _line(lines, second)
    for line in it:
        yield from _line(lines, line)


def _unfinished(why: str | None) -> bool:
    """Whether a line is no document because it ends too early: then it may begin one over many lines."""
    return why is not None and "truncated" in why


def _whole(lines: _Lines, begun: bytes, start: Source) -> Iterator[Document | BadRecord]:
    data = begun + lines.stream.read(max(lines.max_document_bytes + 1 - len(begun), 0))
    if len(data) > lines.max_document_bytes:
        yield BadRecord.at(start, f"one JSON document of more than {lines.max_document_bytes} bytes; split it")
        return
    elements, why = _try_list(data)
    if elements is not None:
        yield from _elements(data, elements, start)
        return
    value: Json = None
    if why is None:
        value, why = _try(data)
    if why is None:
        yield Document(value, start, 1, "whole", len(data))
    elif not _OPENING.match(data) and _some_line_is_a_document(data):
        for n, line in enumerate(io.BytesIO(data)):  # lines after all, the first ones broken
            if line.strip():
                yield _document(line, Source(start.file, start.line + n), start.line + n)
    else:
        yield _broken(data, why, start)


def _some_line_is_a_document(data: bytes) -> bool:
    return any(isinstance(_try(line)[0], dict) for line in itertools.islice(io.BytesIO(data), 2, _LOOKED_AT))


def _elements(data: bytes, elements: list[msgspec.Raw], start: Source) -> Iterator[Document | BadRecord]:
    at = data.index(b"[") + 1
    line = start.line + data.count(b"\n", 0, at)
    for n, raw in enumerate(elements):
        gap = _BETWEEN.match(data, at)
        begin = gap.end() if gap is not None else at
        line += data.count(b"\n", at, begin)
        yield _document(raw, Source(start.file, line, f"$[{n}]"), n + 1, "element")
        size = len(memoryview(raw))
        line += data.count(b"\n", begin, begin + size)
        at = begin + size


def _broken(data: bytes, why: str, start: Source) -> BadRecord:
    where = re.search(r"\(byte (\d+)\)", why)
    upto = int(where.group(1)) if where is not None else len(data.rstrip())
    return BadRecord(start.file, start.line + data.count(b"\n", 0, upto), why)


def _line(lines: _Lines, line: bytes | BadRecord) -> Iterator[Document | BadRecord]:
    if isinstance(line, BadRecord):
        yield line
        return
    yield _document(line, lines.source(), lines.number)


def _document(
    raw: bytes | msgspec.Raw, source: Source, number: int, kind: Literal["line", "element"] = "line"
) -> Document | BadRecord:
    value, why = _try(raw.strip() if isinstance(raw, bytes) else raw)
    if why is not None:
        return BadRecord.at(source, why)
    return Document(value, source, number, kind, len(memoryview(raw)))


def _try(raw: bytes | msgspec.Raw) -> tuple[Json, str | None]:
    try:
        return decode(raw), None
    except Invalid as error:
        return None, str(error)


def _try_list(raw: bytes) -> tuple[list[msgspec.Raw] | None, str | None]:
    """The elements of a list, not yet decoded; None with the reason where `raw` is broken, without where it is
    another document. (`raw` may be hundreds of megabytes: only what is not a list is decoded here.)"""
    if not raw.lstrip().startswith(b"["):
        return None, _try(raw)[1]
    try:
        return msgspec.json.decode(raw, type=list[msgspec.Raw]), None
    except RecursionError:
        return None, "nested too deeply"
    except (msgspec.DecodeError, UnicodeError, ValueError) as error:
        return None, f"not JSON: {error}"


def chained(*parts: Iterator[Document | BadRecord] | list[Document | BadRecord]) -> Iterator[Document | BadRecord]:
    """What was looked at already, and then the rest."""
    return itertools.chain.from_iterable(parts)
