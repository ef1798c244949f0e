"""MemDaily: short diaries, `{"kind", "tid", "messages": [{"mid", "message", "time", "place"}]}`.

The turn's id is `mid`, the session `<kind>-<tid>`, the role user. Times are taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from lamina.errors import Invalid
from lamina.importer import values
from lamina.importer.formats.base import Format, guarded, numbered
from lamina.importer.formats.locomo import EPOCH
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, SessionEnd, Source, Turn

_TIME = re.compile(r"([0-9]{4})年([0-9]{1,2})月([0-9]{1,2})日[^0-9]{0,20}([0-9]{1,2}):([0-9]{2})")


class MemDailyReader:
    """A document is one diary; the questions about it are no part of it."""

    def __init__(self, stem: str) -> None:
        self._stem = stem

    def feed(self, document: Document) -> Iterator[Item]:
        diary = values.mapping(document.value, "a diary")
        names = [values.ident(diary.get(key)) for key in ("kind", "tid")]
        session = "-".join(names) if all(names) else numbered(self._stem, document)
        for n, value in enumerate(values.objects(diary.get("messages"), "messages")):
            where = document.source.at(f".messages[{n}]")
            yield from guarded(where, _turn, value, session, where)
        yield SessionEnd(session=session, source=document.source)

    def finish(self) -> Iterator[Item]:
        return iter(())


def _turn(value: Json, session: str, source: Source) -> Iterator[Item]:
    turn = values.mapping(value, "a message")
    yield Turn(
        role="user",
        text=values.text(turn.get("message"), "message"),
        session=session,
        turn_id=values.text(values.ident(turn.get("mid")) or None, "mid"),
        source=source,
        time=_time(turn.get("time")),
    )


def _time(stated: Json) -> datetime:
    found = _TIME.match(stated) if isinstance(stated, str) else None
    if found is None:
        return EPOCH
    year, month, day, hour, minute = map(int, found.groups())
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError as error:
        raise Invalid(f"{found.group()} is not a date of the calendar") from error


def _recognises(document: Document) -> bool:
    match document.value:
        case {"messages": [{"mid": _, "message": _}, *_]}:
            return True
    return False


FORMAT = Format("memdaily", "MemDaily diaries", _recognises, MemDailyReader)
