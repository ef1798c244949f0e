"""Transcripts of Claude Code: `~/.claude/projects/<directory>/<session>.jsonl`.

One JSON object a line. `user` and `assistant` lines carry `message` (role, content: text or Anthropic blocks),
`uuid`, `sessionId`, `timestamp`, `cwd`; one answer of the model is spread over several lines, a block each.
`isMeta`, `isCompactSummary`, `isApiErrorMessage`, the model `<synthetic>` and some tags mark what the program
itself wrote in another's place: these are system turns here. `isSidechain` lines belong to a subagent (`agentId`):
a session of their own beside the main one. What a person types while the model works stands in an `attachment`
line alone (`queued_command`). Every other type of line is bookkeeping.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath

from msgspec.structs import replace

from lamina.importer import values
from lamina.importer.blocks import Content, content_of
from lamina.importer.conversation import Conversation
from lamina.importer.formats.base import Format
from lamina.importer.reading import Document
from lamina.importer.records import Item, Json, Part, Skipped

AGENT = "claude-code"
_BOOKKEEPING = {"summary", "file-history-snapshot", "queue-operation", "progress", "permission-mode", "last-prompt"}
_MARKS = ("isMeta", "isCompactSummary", "isApiErrorMessage")
_WRITTEN = (
    "<task-notification>",
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "[Request interrupted by user",
)
_REMINDER = ("<system-reminder>", "</system-reminder>")
_MAX_SESSIONS = 256


class ClaudeCodeReader:
    """The sessions of a file (mostly one, and its subagents), the last 256 of them at hand."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._sessions: OrderedDict[str, Conversation] = OrderedDict()

    def feed(self, document: Document) -> Iterator[Item]:
        line = values.mapping(document.value, "a line")
        kind = values.text(line.get("type"), "type")
        time = line.get("timestamp")
        match line:
            case {"type": "user" | "assistant"}:
                message = values.mapping(line.get("message"), "message")
                role, said = message.get("role", kind), message.get("content")
                written = message.get("model") == "<synthetic>" or any(line.get(key) is True for key in _MARKS)
            case {"type": "attachment", "attachment": {"type": "queued_command"}}:
                queued = values.mapping(line["attachment"], "attachment")
                role, said, time = "user", queued.get("prompt"), queued.get("timestamp") or time
                written = queued.get("commandMode", "prompt") != "prompt"
            case _:
                yield Skipped(document.source, f"a line of type {kind[:40]} holds no message")
                return
        content = _without_reminders(content_of(said))
        conversation, closing = self._session(line)
        yield from closing
        yield from conversation.message(
            "system" if written or content.text.startswith(_WRITTEN) else values.role(role),
            content,
            turn_id=values.text(line.get("uuid"), "uuid"),
            source=document.source,
            time=values.when(time),
        )

    def finish(self) -> Iterator[Item]:
        for conversation in self._sessions.values():
            yield from conversation.finish()

    def _session(self, line: dict[str, Json]) -> tuple[Conversation, Iterator[Item]]:
        session, agent = values.ident(line.get("sessionId")) or self._stem, AGENT
        if line.get("isSidechain") is True:
            sub = values.ident(line.get("agentId"))
            session += f"/agent-{sub}" if sub else "/sidechain"
            agent += f"/{sub}" if sub else "/sidechain"
        conversation = self._sessions.get(session)
        closing: Iterator[Item] = iter(())
        if conversation is None:
            conversation = Conversation(session, agent=agent, project=project_of(line.get("cwd")))
            if len(self._sessions) >= _MAX_SESSIONS:
                closing = self._sessions.popitem(last=False)[1].finish()
        self._sessions[session] = conversation
        self._sessions.move_to_end(session)
        return conversation, closing


def project_of(cwd: Json) -> str:
    """The project that a working directory stands for: its last component."""
    if not isinstance(cwd, str):
        return ""
    return PureWindowsPath(cwd).name if "\\" in cwd else PurePosixPath(cwd).name


def _without_reminders(content: Content) -> Content:
    """Reminders that the program adds to what a user wrote become parts: the user did not say them."""
    opening, closing = _REMINDER
    kept, cut, at = [], [], 0
    text = content.text
    while (begin := text.find(opening, at)) >= 0 and (end := text.find(closing, begin)) >= 0:
        kept.append(text[at:begin])
        at = end + len(closing)
        cut.append(Part("text/plain; charset=utf-8", text[begin:at].encode(), "system-reminder"))
    if not cut:
        return content
    kept.append(text[at:])
    return replace(content, text="".join(kept).strip(), parts=content.parts + tuple(cut))


def _recognises(document: Document) -> bool:
    match document.value:
        case {"type": "user" | "assistant", "message": dict(), "sessionId": str()}:
            return True
        case {"type": str(kind), "sessionId": str()} if kind in _BOOKKEEPING:
            return True
        case {"type": "summary", "leafUuid": _} | {"type": "file-history-snapshot", "snapshot": _}:
            return True
        case {"type": "system", "subtype": _, "sessionId": _} | {"type": "attachment", "attachment": dict()}:
            return True
        case {"type": "user" | "assistant", "message": dict(), "uuid": str()}:
            return True
    return False


FORMAT = Format("claude-code", "Claude Code transcripts", _recognises, ClaudeCodeReader)
