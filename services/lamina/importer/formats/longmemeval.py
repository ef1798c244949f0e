"""LongMemEval: a question and the haystack of sessions it was asked over.

The turn's id is `<session id>:<position from 0>`, the session `<question id>/<session id>`; a session id that comes
again in one haystack gets `#2`. The n-th turn of a session is n minutes after the session's date, taken as UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from lamina.errors import Invalid
from lamina.importer import values
from lamina.importer.formats.base import Format, guarded, numbered
from lamina.importer.formats.locomo import EPOCH
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, SessionEnd, Source, Turn


class LongMemEvalReader:
    """A document is one haystack; the question and where its answer stands are no part of it."""

    def __init__(self, stem: str) -> None:
        self._stem = stem

    def feed(self, document: Document) -> Iterator[Item]:
        case = values.mapping(document.value, "a case")
        name = values.ident(case.get("question_id")) or numbered(self._stem, document)
        sessions = values.objects(case.get("haystack_sessions"), "haystack_sessions")
        ids = values.objects(case.get("haystack_session_ids"), "haystack_session_ids")
        dates = values.objects(case.get("haystack_dates"), "haystack_dates")
        if not len(sessions) == len(ids) == len(dates):
            raise Invalid(f"{len(sessions)} sessions, {len(ids)} session ids and {len(dates)} dates do not fit")
        seen: Counter[str] = Counter()
        for n, (turns, given, date) in enumerate(zip(sessions, ids, dates, strict=True)):
            where = document.source.at(f".haystack_sessions[{n}]")
            sid = values.ident(given)
            seen[sid] += 1
            session = f"{name}/{sid}" + (f"#{seen[sid]}" if seen[sid] > 1 else "")
            yield from guarded(where, _session, turns, session, sid, date, where)

    def finish(self) -> Iterator[Item]:
        return iter(())


def _session(turns: Json, session: str, sid: str, date: Json, source: Source) -> Iterator[Item]:
    stated = date.split("(")[0] + date.split(")")[-1] if isinstance(date, str) and "(" in date else date
    begin = values.utc(stated, "%Y/%m/%d  %H:%M", "%Y/%m/%d %H:%M") or EPOCH
    time = begin
    for n, value in enumerate(values.objects(turns, "a session")):
        time = begin + timedelta(minutes=n)
        where = source.at(f"[{n}]")
        yield from guarded(where, _turn, value, session, f"{sid}:{n}", time, where)
    yield SessionEnd(session=session, source=source, time=time)


def _turn(value: Json, session: str, turn_id: str, time: datetime, source: Source) -> Iterator[Item]:
    turn = values.mapping(value, "a turn")
    yield Turn(
        role=values.role(turn.get("role")),
        text=values.text(turn.get("content"), "content"),
        session=session,
        turn_id=turn_id,
        source=source,
        time=time,
    )


def _recognises(document: Document) -> bool:
    match document.value:
        case {"haystack_sessions": list()}:
            return True
    return False


FORMAT = Format("longmemeval", "LongMemEval haystacks", _recognises, LongMemEvalReader)
