"""Plain lines, one turn or tool call each, and ShareGPT-like conversations.

A turn: `{"role", "text"}`, and where known `session`, `name`, `time`, `turn_id`, `agent`, `project`. Also read:
`from` for role, `content` or `value` for text, `id` for turn_id, `timestamp` for time, `session_id` for session.
A call: `{"tool", "arguments", "result"}`, and where known `call_id`, `is_error`, `session`, `time`, `agent`,
`project`. ShareGPT: `{"conversations": [{"from", "value"}]}` with an optional `id`.

Without a session, the file's stem is the session; without an id, `<stem>:<line>` is. A time needs an offset.
"""

from __future__ import annotations

from collections.abc import Iterator

from lamina.errors import Invalid
from lamina.importer import values
from lamina.importer.blocks import Content, arguments_of, content_of, result_of
from lamina.importer.conversation import Conversation
from lamina.importer.formats.base import Format, guarded, numbered
from lamina.importer.reading import Document
from lamina.importer.records import Call, Item, Json, Source

_LISTS = ("conversations", "conversation", "dialog", "dialogue")


class JsonlReader:
    """Lines do not depend on one another: nothing is kept between them."""

    def __init__(self, stem: str) -> None:
        self._stem = stem

    def feed(self, document: Document) -> Iterator[Item]:
        line = values.mapping(document.value, "a line")
        fallback = f"{self._stem}:{document.number}"
        many = next((key for key in _LISTS if isinstance(line.get(key), list)), None)
        if many is not None:
            name = _first_id(line, "id", "session", "session_id") or numbered(self._stem, document)
            for n, value in enumerate(values.objects(line[many], many)):
                where = document.source.at(f".{many}[{n}]")
                yield from guarded(where, self._turn, value, name, f"{name}:{n}", where)
        elif "tool" in line and "role" not in line:
            yield self._call(line, fallback, document.source)
        else:
            yield from self._turn(line, self._stem, fallback, document.source)

    def finish(self) -> Iterator[Item]:
        return iter(())

    def _turn(self, value: Json, session: str, fallback: str, source: Source) -> Iterator[Item]:
        line = values.mapping(value, "a turn")
        content = content_of(_first(line, "text", "content", "value"))
        if content.calls or content.results:
            raise Invalid("this line holds tool blocks: import it with --format anthropic")
        yield from self._where(line, session).message(
            values.role(_first(line, "role", "from")),
            Content(text=content.text, parts=content.parts + content.reasoning),
            turn_id=_first_id(line, "turn_id", "id") or fallback,
            source=source,
            time=values.when(_first(line, "time", "timestamp", required=False)),
            name=values.optional_text(line.get("name"), "name"),
        )

    def _call(self, line: dict[str, Json], fallback: str, source: Source) -> Call:
        where = self._where(line, self._stem)
        call_id = _first_id(line, "call_id", "id") or fallback
        if "result" not in line:
            raise Invalid("a tool call needs its result")
        result = result_of(call_id, line["result"], is_error=line.get("is_error") is True)
        return Call(
            tool=values.text(line["tool"], "tool"),
            arguments=arguments_of(line.get("arguments")),
            result=result.result,
            session=where.session,
            call_id=call_id,
            source=source,
            time=values.when(_first(line, "time", "timestamp", required=False)),
            is_error=result.is_error,
            agent=where.agent,
            project=where.project,
            parts=result.parts,
        )

    def _where(self, line: dict[str, Json], session: str) -> Conversation:
        return Conversation(
            _first_id(line, "session", "session_id") or session,
            agent=values.optional_text(line.get("agent"), "agent") or "",
            project=values.optional_text(line.get("project"), "project") or "",
        )


def _first(line: dict[str, Json], *keys: str, required: bool = True) -> Json:
    for key in keys:
        if key in line:
            return line[key]
    if required:
        raise Invalid(f"a turn needs {' or '.join(keys)}")
    return None


def _first_id(line: dict[str, Json], *keys: str) -> str:
    for key in keys:
        found = values.ident(line.get(key))
        if found:
            return found
    return ""


def _recognises(document: Document) -> bool:
    match document.value:
        case {"tool": str(), "result": _}:
            return True
        case {"role": str(), **rest} | {"from": str(), **rest}:
            return not rest.keys().isdisjoint(("text", "content", "value"))
        case dict(line):
            return any(isinstance(line.get(key), list) for key in _LISTS)
    return False


FORMAT = Format("jsonl", "one turn or tool call a line; ShareGPT", _recognises, JsonlReader)
