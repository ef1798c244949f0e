"""LoCoMo: long chats between two people, `conversation.session_N` with `session_N_date_time`.

The turn's id is its `dia_id` (`D1:3`), the session `<sample_id>/session_N`, the name the speaker, the role user.
The n-th turn of a session is n minutes after the session's time, taken as UTC; a session without a time is a day
after the one before it. What a picture showed (link, caption, query) is kept as a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from lamina.importer import values
from lamina.importer.blocks import unknown
from lamina.importer.formats.base import Format, guarded, numbered
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, SessionEnd, Source, Turn

EPOCH = datetime(2024, 1, 1, 9, tzinfo=UTC)
"""Where a data set without any time begins."""
_SESSION = re.compile(r"session_(\d{1,9})")
_PICTURE = ("img_url", "blip_caption", "query")


class LocomoReader:
    """A document is one conversation; the questions about it are no part of it."""

    def __init__(self, stem: str) -> None:
        self._stem = stem

    def feed(self, document: Document) -> Iterator[Item]:
        sample = values.mapping(document.value, "a conversation")
        name = values.ident(sample.get("sample_id")) or numbered(self._stem, document)
        where = document.source.at(".conversation")
        conversation = values.mapping(sample.get("conversation"), "conversation")
        found = [(int(hit.group(1)), key) for key in conversation if (hit := _SESSION.fullmatch(key))]
        begin = EPOCH
        for _, key in sorted(found):
            stated = values.utc(conversation.get(f"{key}_date_time"), "%I:%M %p on %d %B, %Y")
            begin = stated or begin + timedelta(days=1)
            inner = where.at(f".{key}")
            yield from guarded(inner, _session, conversation[key], f"{name}/{key}", begin, inner)

    def finish(self) -> Iterator[Item]:
        return iter(())


def _session(turns: Json, session: str, begin: datetime, source: Source) -> Iterator[Item]:
    time = begin
    for n, value in enumerate(values.objects(turns, "a session")):
        time = begin + timedelta(minutes=n)
        where = source.at(f"[{n}]")
        yield from guarded(where, _turn, value, session, time, where)
    yield SessionEnd(session=session, source=source, time=time)


def _turn(value: Json, session: str, time: datetime, source: Source) -> Iterator[Item]:
    turn = values.mapping(value, "a turn")
    picture: Json = {key: turn[key] for key in _PICTURE if key in turn}
    yield Turn(
        role="user",
        text=values.text(turn.get("text"), "text"),
        session=session,
        turn_id=values.text(turn.get("dia_id"), "dia_id"),
        source=source,
        name=values.text(turn.get("speaker"), "speaker"),
        time=time,
        parts=(unknown(picture, "picture"),) if picture else (),
    )


def _recognises(document: Document) -> bool:
    match document.value:
        case {"conversation": dict(conversation)}:
            return any(_SESSION.fullmatch(key) for key in conversation)
    return False


FORMAT = Format("locomo", "LoCoMo chats", _recognises, LocomoReader)
