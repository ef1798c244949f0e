"""What an importer finds in a log: turns, tool calls, ends of sessions, and what it could not or need not take.

Every record carries the place it was read from, so that each thing in memory can be traced to a line.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from msgspec import Struct

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Source(Struct, frozen=True, gc=False):
    """A place in a log: the file as it was named, the line (from 1) where the document begins, and the
    JSON path inside it."""

    file: str
    line: int
    path: str = "$"

    def at(self, step: str) -> Source:
        """The place one step further in: `.messages`, `[3]`."""
        return Source(self.file, self.line, self.path + step)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + ("" if self.path == "$" else f" {self.path}")


class Part(Struct, frozen=True, gc=False):
    """An image, a file, reasoning, or a piece of a kind unknown here: its bytes as they were, never dropped."""

    media_type: str
    data: bytes
    name: str = ""


class Turn(Struct, frozen=True, kw_only=True, gc=False):
    """Somebody said something. `role` is one of `lamina.events.ROLES`; `turn_id` is the log's own id or one
    made from the conversation's id and the position. `time` is None where the log tells none."""

    role: str
    text: str
    session: str
    turn_id: str
    source: Source
    name: str | None = None
    time: datetime | None = None
    agent: str = ""
    project: str = ""
    parts: tuple[Part, ...] = ()


class Call(Struct, frozen=True, kw_only=True):
    """A tool call with its result. `tool` is `unknown` for a result whose call is not in the log."""

    tool: str
    arguments: dict[str, Json]
    result: str
    session: str
    call_id: str
    source: Source
    time: datetime | None = None
    is_error: bool = False
    agent: str = ""
    project: str = ""
    parts: tuple[Part, ...] = ()


class SessionEnd(Struct, frozen=True, kw_only=True):
    """The log says that nothing more comes in this session."""

    session: str
    source: Source
    time: datetime | None = None
    agent: str = ""
    project: str = ""


class Skipped(Struct, frozen=True):
    """Something that is no part of the conversation, and why: counted, never silent."""

    source: Source
    why: str


class BadRecord(Struct, frozen=True):
    """Something that should be a record and cannot be read as one. The caller decides to skip it or to stop."""

    file: str
    line: int
    why: str
    path: str = "$"

    @classmethod
    def at(cls, source: Source, why: str) -> BadRecord:
        """The bad record at `source`."""
        return cls(source.file, source.line, why, source.path)

    def __str__(self) -> str:
        return f"{Source(self.file, self.line, self.path)}: {self.why}"


Record: TypeAlias = Turn | Call | SessionEnd
Item: TypeAlias = Turn | Call | SessionEnd | Skipped | BadRecord
