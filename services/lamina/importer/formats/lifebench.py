"""LifeBench: records of one person's phone, `{"user", "type", "id", "rec"}`.

A chat with an assistant (`agent_chat`) is a session of its own, `<user>/agent_chat:<id>`, with turns
`agent_chat:<id>:<n>`. A message, call, note, photo, appointment or notification is one turn of the session
`<user>/<type>`: role user, id `<type>:<id>` (`#2` where it comes again), the contact as name, and as text its fields,
one a line, in their order. Times are taken as UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import msgspec

from lamina.importer import values
from lamina.importer.blocks import content_of
from lamina.importer.formats.base import Format, guarded
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, SessionEnd, Skipped, Source, Turn

_TIMES = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_APART = {"event_id", "datetime", "contactName"}


class LifeBenchReader:
    """Keeps which ids were seen: they come again."""

    def __init__(self, stem: str) -> None:
        self._seen: Counter[str] = Counter()

    def feed(self, document: Document) -> Iterator[Item]:
        line = values.mapping(document.value, "a record")
        user, kind = (values.text(line.get(key), key) for key in ("user", "type"))
        record = values.mapping(line.get("rec"), "rec")
        turn_id = f"{kind}:{values.ident(line.get('id'))}"
        self._seen[turn_id] += 1
        if self._seen[turn_id] > 1:
            turn_id += f"#{self._seen[turn_id]}"
        if isinstance(record.get("conversation"), dict):
            yield from _chat(record, f"{user}/{turn_id}", turn_id, document.source.at(".rec.conversation"))
            return
        yield Turn(
            role="user",
            text="\n".join(f"{key}: {_shown(value)}" for key, value in record.items() if key not in _APART),
            session=f"{user}/{kind}",
            turn_id=turn_id,
            source=document.source,
            name=values.optional_text(record.get("contactName"), "contactName") or None,
            time=values.utc(record.get("datetime"), *_TIMES),
        )

    def finish(self) -> Iterator[Item]:
        return iter(())


def _chat(record: dict[str, Json], session: str, prefix: str, source: Source) -> Iterator[Item]:
    time = values.utc(record.get("date"), *_TIMES)
    n = 0
    for key, pair in values.mapping(record["conversation"], "conversation").items():
        for who, said in values.mapping(pair, key).items():
            where = source.at(f"[{key!r}].{who}")
            if who not in ("user", "assistant"):
                yield Skipped(where, "notes beside the chat")
                continue
            yield from guarded(where, _said, who, said, session, f"{prefix}:{n}", time, where)
            n += 1
    yield SessionEnd(session=session, source=source, time=time)


def _said(who: str, said: Json, session: str, turn_id: str, time: datetime | None, source: Source) -> Iterator[Item]:
    content = content_of(said.get("content") if isinstance(said, dict) else said)
    yield Turn(role=values.role(who), text=content.text, session=session, turn_id=turn_id, source=source, time=time)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _recognises(document: Document) -> bool:
    match document.value:
        case {"user": str(), "type": str(), "id": _, "rec": dict()}:
            return True
    return False


FORMAT = Format("lifebench", "LifeBench phone records", _recognises, LifeBenchReader)
