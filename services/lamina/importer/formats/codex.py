"""Rollouts of Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`.

One object a line: `timestamp`, `type`, `payload`. `session_meta` (first line) names the session and its working
directory; `turn_context` may change the directory; `response_item` holds the conversation as items of the
Responses interface; `event_msg` repeats it for the screen; `compacted` replaces the history. Before September
2025 the first line was the bare meta data and the others bare items. Items have no id of their own: ids are
the line numbers, which do not change, since the file only grows. Instructions and environment that the program
sends in the user's place are system turns.
"""

from __future__ import annotations

from collections.abc import Iterator

from lamina.importer import values
from lamina.importer.blocks import content_of
from lamina.importer.conversation import Conversation
from lamina.importer.formats.base import Format
from lamina.importer.formats.claude_code import project_of
from lamina.importer.formats.messages import item_content
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, Skipped

AGENT = "codex"
_LINES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skill>",
    "<recommended_plugins>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions for ",
)


class CodexReader:
    """One file is one session; the meta line of the session a fork was copied from changes nothing."""

    def __init__(self, stem: str) -> None:
        self._conversation = Conversation(stem, agent=AGENT)
        self._named = False

    def feed(self, document: Document) -> Iterator[Item]:
        line = values.mapping(document.value, "a line")
        payload = line.get("payload")
        kind = line.get("type")
        if isinstance(payload, dict):
            if kind == "session_meta":
                self._meta(payload)
            elif kind == "turn_context":
                self._conversation.project = project_of(payload.get("cwd")) or self._conversation.project
            elif kind == "response_item":
                yield from self._item(payload, line.get("timestamp"), document)
                return
            yield Skipped(document.source, f"a line of type {values.text(kind, 'type')[:40]} holds no message")
        elif isinstance(kind, str):
            yield from self._item(line, line.get("timestamp"), document)
        else:
            if "id" in line and "timestamp" in line:
                self._meta(line)
            yield Skipped(document.source, "a line of state holds no message")

    def finish(self) -> Iterator[Item]:
        return self._conversation.finish()

    def _meta(self, meta: dict[str, Json]) -> None:
        if not self._named:
            self._named = True
            self._conversation.session = values.ident(meta.get("id")) or self._conversation.session
            self._conversation.project = project_of(meta.get("cwd"))
            nickname = values.ident(meta.get("agent_nickname"))
            self._conversation.agent = f"{AGENT}/{nickname}" if nickname else AGENT

    def _item(self, item: dict[str, Json], timestamp: Json, document: Document) -> Iterator[Item]:
        kind = values.text(item.get("type"), "type")
        turn_id = f"{self._conversation.session}:{document.number}"
        time = values.when(timestamp)
        if kind in ("ghost_snapshot", "compaction", "compaction_summary"):
            yield Skipped(document.source, f"an item of type {kind} holds no message")
        elif kind == "message":
            content = content_of(item.get("content"))
            role = values.role(item.get("role"))
            if role == "user" and content.text.lstrip().startswith(_INJECTED):
                role = "system"
            yield from self._conversation.message(role, content, turn_id=turn_id, source=document.source, time=time)
        else:
            content = item_content(item, kind)
            if kind == "reasoning" and not content.reasoning:
                yield Skipped(document.source, "encrypted reasoning")
                return
            yield from self._conversation.message(
                "assistant", content, turn_id=turn_id, source=document.source, time=time
            )


def _recognises(document: Document) -> bool:
    match document.value:
        case {"type": str(kind), "payload": dict()}:
            return kind in _LINES
        case {"id": str(), "timestamp": str(), "instructions": _} | {"record_type": "state"}:
            return True
    return False


FORMAT = Format("codex", "Codex rollouts", _recognises, CodexReader)
