"""One conversation while it is read: pairs calls with results, and puts reasoning beside what it led to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime

from lamina.importer.blocks import Content, ToolResult, ToolUse
from lamina.importer.records import Call, Item, Part, Skipped, Source, Turn

MAX_OPEN = 4096
"""Calls without a result that are remembered: memory stays bounded whatever a file holds."""


class Conversation:
    """Turns messages into records of one session.

    A call is recorded where its result stands. A result whose call is unknown (or more than `MAX_OPEN` calls
    back) is kept as a call of the tool `unknown`; a second result of one call is skipped; a call without a
    result is skipped at the end, since its result may stand in the log at the next import. Reasoning is kept
    as parts of the assistant's next turn.
    """

    def __init__(self, session: str, *, agent: str = "", project: str = "") -> None:
        self.session = session
        self.agent = agent
        self.project = project
        self._open: OrderedDict[str, tuple[ToolUse, Source]] = OrderedDict()
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._reasoning: list[tuple[Part, Source]] = []

    def message(
        self,
        role: str,
        content: Content,
        *,
        turn_id: str,
        source: Source,
        time: datetime | None = None,
        name: str | None = None,
    ) -> Iterator[Item]:
        """The records of one message: results before what a user adds, the assistant's words before results."""
        for n, call in enumerate(content.calls):
            yield from self._expect(call, f"{turn_id}#{n}", source)
        self._reasoning += [(part, source) for part in content.reasoning]
        if role != "assistant":
            yield from self._drop_reasoning(0)
            yield from self._results(content.results, turn_id, source, time)
        if content.text.strip() or content.parts or not (content.calls or content.results or content.reasoning):
            held = tuple(part for part, _ in self._reasoning) if role == "assistant" else ()
            if held:
                self._reasoning.clear()
            yield Turn(
                role=role,
                text=content.text,
                session=self.session,
                turn_id=turn_id,
                source=source,
                name=name,
                time=time,
                agent=self.agent,
                project=self.project,
                parts=held + content.parts,
            )
        if role == "assistant":
            yield from self._results(content.results, turn_id, source, time)
        yield from self._drop_reasoning(MAX_OPEN)

    def finish(self) -> Iterator[Item]:
        """What the end of the log leaves open."""
        yield from self._drop_reasoning(0)
        for call, source in self._open.values():
            yield Skipped(source, f"the call {call.call_id} of {call.tool} has no result yet")
        self._open.clear()

    def _expect(self, call: ToolUse, fallback: str, source: Source) -> Iterator[Item]:
        known = ToolUse(call.call_id or fallback, call.tool, call.arguments)
        self._open[known.call_id] = (known, source)
        if len(self._open) > MAX_OPEN:
            _, (lost, where) = self._open.popitem(last=False)
            yield Skipped(where, f"the call {lost.call_id} of {lost.tool} has no result in reach")

    def _results(
        self, results: tuple[ToolResult, ...], turn_id: str, source: Source, time: datetime | None
    ) -> Iterator[Item]:
        for n, result in enumerate(results):
            call_id = result.call_id or self._oldest(result.tool) or f"{turn_id}#{n}"
            if call_id in self._answered:
                yield Skipped(source, f"a second result of the call {call_id}")
                continue
            call, _ = self._open.pop(call_id, (ToolUse(call_id, result.tool or "unknown", {}), source))
            self._answered[call_id] = None
            if len(self._answered) > MAX_OPEN:
                self._answered.popitem(last=False)
            yield Call(
                tool=call.tool,
                arguments=call.arguments,
                result=result.result,
                session=self.session,
                call_id=call_id,
                source=source,
                time=time,
                is_error=result.is_error,
                agent=self.agent,
                project=self.project,
                parts=result.parts,
            )

    def _oldest(self, tool: str) -> str:
        for call_id, (call, _) in self._open.items():
            if tool in ("", call.tool):
                return call_id
        return ""

    def _drop_reasoning(self, keep: int) -> Iterator[Item]:
        while len(self._reasoning) > keep:
            _, source = self._reasoning.pop(0)
            yield Skipped(source, "reasoning without a message")
