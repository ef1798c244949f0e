"""What the demo did and found: the document that `lamina demo --json` writes."""

from __future__ import annotations

from msgspec import Struct

from lamina.records import Hits


class Seconds(Struct, frozen=True, kw_only=True):
    """How long each part took. `start` includes the start of the daemon where none ran."""

    start: float
    publish: float
    settle: float
    recall: float


class Played(Struct, frozen=True, kw_only=True):
    """A conversation that was published."""

    session: str
    language: str
    turns: int
    tool_results: int


class Stubbed(Struct, frozen=True, kw_only=True):
    """A tool result and the stub that stands for it in the agent's context."""

    node: str
    tool: str
    original_tokens: int
    original_chars: int
    stub_tokens: int
    stub_chars: int
    text: str


class Answer(Struct, frozen=True, kw_only=True):
    """What recall answered to a question."""

    language: str
    question: str
    hits: Hits


class Reading(Struct, frozen=True, kw_only=True):
    """Exact lines of a tool result, read back through its node."""

    node: str
    query: str
    text: str


class FileInfo(Struct, frozen=True, kw_only=True):
    """A file of the space, relative to the home."""

    path: str
    size_bytes: int


class Demo(Struct, frozen=True, kw_only=True):
    """Everything the demo did and found. `known`: it had been played into this home before, and changed nothing.

    `unsettled` says what was still being digested when the questions were asked.
    """

    title: str
    home: str
    kept: bool
    space: str
    known: bool
    seconds: Seconds
    sessions: tuple[Played, ...]
    stubs: tuple[Stubbed, ...]
    answers: tuple[Answer, ...]
    files: tuple[FileInfo, ...]
    reading: Reading
    canvas: str = ""
    unsettled: str = ""
