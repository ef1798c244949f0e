"""Anthropic message lists, one conversation a file, a line or a list element; and `conversations.json` of a
Claude data export, which has ids and times of its own."""

from __future__ import annotations

from collections.abc import Iterator

from lamina.importer import values
from lamina.importer.blocks import Content, content_of, unknown
from lamina.importer.conversation import Conversation
from lamina.importer.formats import messages
from lamina.importer.formats.base import Format, guarded, numbered
from lamina.importer.formats.openai import OpenAIReader
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, Source

_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document"}


class AnthropicReader(OpenAIReader):
    """Message lists as OpenAI's; the export beside them."""

    def feed(self, document: Document) -> Iterator[Item]:
        value = document.value
        if isinstance(value, dict) and "chat_messages" in value:
            name = messages.conversation_id(value) or numbered(self._stem, document)
            found = values.objects(value["chat_messages"], "chat_messages")
            yield from self._chat(found, name, document.source.at(".chat_messages"))
        else:
            yield from super().feed(document)

    def _chat(self, found: list[Json], name: str, source: Source) -> Iterator[Item]:
        conversation = Conversation(name)
        for n, value in enumerate(found):
            where = source.at(f"[{n}]")
            yield from guarded(where, self._entry, conversation, value, f"{name}:{n}", where)
        yield from conversation.finish()

    def _entry(self, conversation: Conversation, value: Json, fallback: str, source: Source) -> Iterator[Item]:
        message = values.mapping(value, "a message")
        content = content_of(message.get("content"))
        files = tuple(
            unknown(file, key)
            for key in ("attachments", "files", "files_v2")
            for file in values.objects(message.get(key) or [], key)
        )
        text = content.text or values.optional_text(message.get("text"), "text") or ""
        yield from conversation.message(
            values.role(message.get("sender")),
            Content(text, content.parts + files, content.calls, content.results, content.reasoning),
            turn_id=values.ident(message.get("uuid")) or fallback,
            source=source,
            time=values.when(message.get("created_at")),
        )


def _recognises(document: Document) -> bool:
    match document.value:
        case {"chat_messages": list()}:
            return True
        case {"messages": list(), "system": str() | list()}:
            return True
        case {"messages": list(found)}:
            return any(_typical(message) for message in found)
        case list(found):
            return any(_typical(message) for message in found)
    return _typical(document.value)


def _typical(message: Json) -> bool:
    match message:
        case {"role": _, "content": list(blocks)}:
            return any(_block(block) for block in blocks)
    return False


def _block(block: Json) -> bool:
    match block:
        case {"type": "image", "source": dict()}:
            return True
        case {"type": str(kind)}:
            return kind in _BLOCKS
    return False


FORMAT = Format("anthropic", "Anthropic message lists; Claude data export", _recognises, AnthropicReader)
