"""OpenAI message lists: Chat Completions and Responses, one conversation a file, a line or a list element;
and `conversations.json` of a ChatGPT data export.

A message has no id and mostly no time: ids are `<conversation>:<position from 0>` (for one message a line, the
line), times are None.
"""

from __future__ import annotations

from collections.abc import Iterator

from lamina.errors import Invalid
from lamina.importer import values
from lamina.importer.blocks import Content, content_of, unknown
from lamina.importer.conversation import Conversation
from lamina.importer.formats import messages
from lamina.importer.formats.base import Format, guarded, numbered
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, Skipped, Source

_ITEMS = {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"}


class OpenAIReader:
    """Also reads Anthropic lists: their blocks and messages have other types and the same frame."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._own: Conversation | None = None

    def feed(self, document: Document) -> Iterator[Item]:
        value, source = document.value, document.source
        if isinstance(value, list):
            yield from self._conversation(value, numbered(self._stem, document), source)
            return
        frame = values.mapping(value, "a message or conversation")
        name = messages.conversation_id(frame) or numbered(self._stem, document)
        match frame:
            case {"mapping": dict(mapping)}:
                yield from self._export(name, mapping, frame.get("current_node"), source.at(".mapping"))
            case {"messages": list(found)}:
                yield from self._conversation(found, name, source.at(".messages"), frame.get("system"))
            case {"role": _} | {"type": _}:
                if self._own is None:
                    self._own = Conversation(self._stem)
                n = document.number - 1 if document.kind == "element" else document.number
                yield from messages.read_one(self._own, value, f"{self._stem}:{n}", source)
            case _:
                raise Invalid("neither a message nor a list of messages")

    def finish(self) -> Iterator[Item]:
        if self._own is not None:
            yield from self._own.finish()

    def _conversation(self, found: list[Json], name: str, source: Source, system: Json = None) -> Iterator[Item]:
        conversation = Conversation(name)
        if system is not None:
            where = source.at(".system")
            yield from guarded(where, _system, conversation, system, f"{name}:system", where)
        yield from messages.read_all(conversation, found, name, source)
        yield from conversation.finish()

    def _export(self, name: str, mapping: dict[str, Json], current: Json, source: Source) -> Iterator[Item]:
        conversation = Conversation(name)
        branch = _branch(mapping, current)
        for key in branch:
            where = source.at(f"[{key!r}]")
            yield from guarded(where, self._node, conversation, mapping[key], key, where)
        if len(mapping) > len(branch):
            yield Skipped(source, f"{len(mapping) - len(branch)} messages of other branches")
        yield from conversation.finish()

    def _node(self, conversation: Conversation, node: Json, key: str, source: Source) -> Iterator[Item]:
        message = values.mapping(node, "a node").get("message")
        if message is None:
            yield Skipped(source, "the root of the tree holds no message")
            return
        message = values.mapping(message, "a message")
        author = values.mapping(message.get("author"), "author")
        yield from conversation.message(
            values.role(author.get("role")),
            _export_content(values.mapping(message.get("content"), "content")),
            turn_id=values.ident(message.get("id")) or key,
            source=source,
            time=values.when(message.get("create_time")),
            name=values.optional_text(author.get("name"), "name"),
        )


def _system(conversation: Conversation, system: Json, turn_id: str, source: Source) -> Iterator[Item]:
    return conversation.message("system", content_of(system), turn_id=turn_id, source=source)


def _export_content(content: dict[str, Json]) -> Content:
    match content:
        case {"parts": list(pieces)}:
            texts = [piece for piece in pieces if isinstance(piece, str)]
            others = tuple(unknown(piece, "attachment") for piece in pieces if not isinstance(piece, str))
            return Content(text="\n".join(texts), parts=others)
        case {"text": str(text)} | {"result": str(text)} | {"content": str(text)}:
            return Content(text=text)
        case _:
            return Content(parts=(unknown(content, values.ident(content.get("content_type"))),))


def _branch(mapping: dict[str, Json], current: Json) -> list[str]:
    """The keys from the root to the current message; all keys in their order where there is no such path."""
    path: list[str] = []
    seen: set[str] = set()
    at = current
    while isinstance(at, str) and at in mapping and at not in seen:
        seen.add(at)
        path.append(at)
        node = mapping[at]
        at = node.get("parent") if isinstance(node, dict) else None
    return path[::-1] or list(mapping)


def _recognises(document: Document) -> bool:
    match document.value:
        case {"mapping": dict(), "current_node": _} | {"mapping": dict(), "create_time": _}:
            return True
        case {"messages": [{"role": _}, *_]} | {"messages": []}:
            return True
        case [{"role": _}, *_]:
            return True
        case {"role": _, "tool_calls": _} | {"role": _, "tool_call_id": _} | {"role": _, "function_call": _}:
            return True
        case {"role": str(), "content": _}:
            return document.kind == "element"
        case {"type": str(kind), **rest}:
            return kind in _ITEMS and "payload" not in rest
    return False


FORMAT = Format("openai", "OpenAI message lists; ChatGPT data export (conversations.json)", _recognises, OpenAIReader)
