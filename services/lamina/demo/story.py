"""The bundled session as data: who said what when, what the tools returned, what is asked afterwards."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

DATA = files("lamina.demo") / "data"


class Happened(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn, or a tool result where `tool` is given; `result_file` lies beside the story."""

    id: str
    time: str
    role: str = ""
    name: str | None = None
    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = {}
    result_file: str = ""
    is_error: bool = False

    def result(self) -> str:
        return (DATA / self.result_file).read_text(encoding="utf-8")


class Conversation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: str
    language: str
    events: tuple[Happened, ...]


class Question(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    language: str
    text: str


class Story(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    space: str
    title: str
    story: str
    sessions: tuple[Conversation, ...]
    questions: tuple[Question, ...]


def load() -> Story:
    """The bundled story."""
    return msgspec.json.decode((DATA / "session.json").read_bytes(), type=Story)
