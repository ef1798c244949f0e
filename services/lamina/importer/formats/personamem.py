"""PersonaMem: chats written as one text, `{"id", "user_id", "content": "[SYSTEM] ... [USER] ... [ASSISTANT] ..."}`.

Each marked paragraph is a turn: id `<id>:<position from 0>`, session `<id>`. There are no times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lamina.errors import Invalid
from lamina.importer import values
from lamina.importer.formats.base import Format
from lamina.importer.reading import Document
from lamina.importer.records import Item, SessionEnd, Turn

_MARK = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] (?:User: |Assistant: )?")


class PersonaMemReader:
    """A document is one chat."""

    def __init__(self, stem: str) -> None:
        pass

    def feed(self, document: Document) -> Iterator[Item]:
        chat = values.mapping(document.value, "a chat")
        session = values.text(chat.get("id"), "id")
        text = values.text(chat.get("content"), "content")
        marks = list(_MARK.finditer(text))
        if not marks or marks[0].start() != 0:
            raise Invalid("the content does not begin with [SYSTEM], [USER] or [ASSISTANT]")
        for n, mark in enumerate(marks):
            end = marks[n + 1].start() if n + 1 < len(marks) else len(text)
            yield Turn(
                role=values.role(mark.group(1)),
                text=text[mark.end() : end],
                session=session,
                turn_id=f"{session}:{n}",
                source=document.source.at(".content"),
            )
        yield SessionEnd(session=session, source=document.source)

    def finish(self) -> Iterator[Item]:
        return iter(())


def _recognises(document: Document) -> bool:
    match document.value:
        case {"id": str(), "user_id": _, "content": str(text)}:
            return _MARK.match(text) is not None
    return False


FORMAT = Format("personamem", "PersonaMem chats", _recognises, PersonaMemReader)
