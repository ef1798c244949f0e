"""The list while it is being fitted: what it says now, what that costs, and what was decided on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from lamina.context import blocks, cuts
from lamina.context.shapes import (
    Conversation,
    Exchange,
    Message,
    Observation,
    content_text,
    fingerprint,
    is_system,
    says_something,
)
from lamina.context.state import Cut, Decision, Dropped, Known, Level, State
from lamina.tokens import count, count_message

Stubs = Callable[[Observation], Known | None]


class Work:
    """A working copy. Nothing given is changed; every change makes the prompt shorter or is not made."""

    def __init__(self, messages: Sequence[Message], places: Sequence[int], conversation: Conversation, stubs: Stubs):
        self.messages: list[dict[str, Any]] = [dict(message) for message in messages]
        self.sizes = [count_message(message) for message in messages]
        self.exchanges: tuple[Exchange, ...] = conversation.exchanges
        self.observations = [seen for exchange in self.exchanges for seen in exchange.observations]
        self.conversation = conversation
        self.provider = conversation.provider
        self.decisions: dict[str, Decision] = {}
        self.thinking: list[str] = []
        self.dropped = Dropped()
        self.out = 0  # exchanges dropped, oldest first
        self.note = self.canvas = self.stable = ""
        self.cuts: list[Cut] = []
        self.unrecorded: dict[str, Observation] = {}
        self.fresh_canvas = ""  # what the canvas becomes with the next cut
        self._shown_tokens = 3 + sum(self.sizes)
        self._places = places
        self._stubs = stubs
        self._known: dict[str, Known | None] = {}

    @property
    def total(self) -> int:
        """The tokens of the prompt as it stands, blocks included."""
        return self._shown_tokens + sum(map(block_tokens, (self.note, self.canvas, self.stable)))

    def shown(self) -> list[int]:
        """The places of the messages that are still in."""
        first = self.exchanges[self.out].start if self.out < len(self.exchanges) else len(self.messages)
        head = self.conversation.head
        return [i for i in range(len(self.messages)) if i < head or i >= first or is_system(self.messages[i])]

    def known(self, observation: Observation) -> Known | None:
        """The record of this result; without one the result is put on the list of those to record."""
        if observation.key not in self._known:
            self._known[observation.key] = self._stubs(observation)
        found = self._known[observation.key]
        if found is None:
            self.unrecorded.setdefault(observation.key, observation)
        return found

    def cut_result(self, observation: Observation, level: Literal["stub", "line", "window"], limit: int = 0) -> None:
        """Put stub, line or window in the place of a result, where that is shorter."""
        known = self.known(observation)
        if known is None:
            return
        text = cuts.current_text(self.messages[observation.index], observation)
        shorter = known.stub if level == "stub" else cuts.line(known.node)
        if level == "window":
            shorter = cuts.window(observation.text, known.node, limit)
        if shorter == text:
            return
        message = cuts.with_text(self.messages[observation.index], observation, shorter)
        before = self.decisions.get(observation.key, Decision())
        if self._put(observation.index, message, level, observation.key, known.node):
            self.decisions[observation.key] = Decision(level, limit, fingerprint(shorter), before.arguments)

    def cut_arguments(self, observation: Observation) -> None:
        """Cut the long arguments of the call this result answers."""
        known = self.known(observation)
        if known is None:
            return
        index = self.exchanges[observation.exchange].start
        message = cuts.with_short_arguments(self.messages[index], observation, known.node)
        before = self.decisions.get(observation.key, Decision())
        if self._put(index, message, "arguments", observation.key, known.node):
            self.decisions[observation.key] = msgspec.structs.replace(before, arguments=True)

    def cut_thinking(self, target: float) -> None:
        """Leave out the thinking of earlier turns, oldest first, until the prompt is down to `target` tokens."""
        for name, exchanges in self._earlier_by_name().items():
            if self.total > target:
                self._without_thinking(name, exchanges)

    def _earlier_by_name(self) -> dict[str, list[Exchange]]:
        """Exchanges that read the same share a name, and with it what is decided for them."""
        named: dict[str, list[Exchange]] = {}
        for exchange in self.earlier_turns():
            named.setdefault(self.name(exchange), []).append(exchange)
        return named

    def _without_thinking(self, name: str, exchanges: Sequence[Exchange]) -> None:
        for exchange in exchanges:
            message = cuts.without_thinking(self.messages[exchange.start])
            if self._put(exchange.start, message, "thinking", None, None):
                self.thinking.append(name)

    def earlier_turns(self) -> list[Exchange]:
        """The exchanges before the newest thing the user said: only their thinking may be left out."""
        last = 0
        for number, exchange in enumerate(self.exchanges):
            if any(says_something(self.messages[i]) for i in range(exchange.start + 1, exchange.end)):
                last = number + 1
        return list(self.exchanges[self.out : last])

    def name(self, exchange: Exchange) -> str:
        """What an exchange is known by from call to call."""
        if exchange.observations:
            return exchange.observations[0].key
        return fingerprint(cuts.without_thinking(self.messages[exchange.start]))

    def drop(self, exchange: Exchange) -> None:
        """Leave out the oldest exchange still in, behind the note. Its results must be recorded first."""
        known = [self.known(seen) for seen in exchange.observations]
        nodes = [found.node for found in known if found is not None]
        if len(nodes) < len(known):
            return
        asked = ""
        for index in range(exchange.start, exchange.end):
            if is_system(self.messages[index]):
                continue
            if says_something(self.messages[index]):
                asked = _user_text(self.messages[index])
            seen = next((item for item in exchange.observations if item.index == index), None)
            node = nodes[exchange.observations.index(seen)] if seen else None
            self._note_cut(index, "dropped", self.sizes[index], 0, seen.key if seen else None, node)
        self._leave_out(self.out + 1)
        self.dropped = blocks.more_dropped(self.dropped, self.out, self.name(exchange), nodes, asked)
        self.note = blocks.note_block(self.dropped)

    def replay(self, state: State, *, noted: bool) -> None:
        """Do again what was decided before. `noted`: the list given already lacks what was dropped."""
        count_out = state.dropped.exchanges
        self.fresh_canvas = state.canvas
        if noted:
            self.dropped, self.note = msgspec.structs.replace(state.dropped, exchanges=0, last=""), state.note
        elif 0 < count_out <= len(self.exchanges) and self.name(self.exchanges[count_out - 1]) == state.dropped.last:
            self._leave_out(count_out)
            self.dropped, self.note = state.dropped, state.note
        if state.thinking:
            earlier = self._earlier_by_name()
            self.thinking = [name for name in state.thinking if name in earlier]
            for name in tuple(self.thinking):
                self._without_thinking(name, earlier[name])
        for seen in self.observations:
            decision = state.decisions.get(seen.key)
            if decision is None or seen.exchange < self.out:
                continue
            if decision.level != "whole" and fingerprint(seen.text) != decision.shown:
                self.cut_result(seen, decision.level, decision.limit)
            if decision.arguments:
                self.cut_arguments(seen)
            self.decisions[seen.key] = decision
        self.cuts.clear()

    @contextmanager
    def attempt(self, worth: int) -> Iterator[None]:
        """Undo what is done inside unless it saves `worth` tokens or more, whatever the new canvas costs."""
        saved = (list(self.messages), list(self.sizes), dict(self.decisions), list(self.thinking), list(self.cuts))
        texts = (self.dropped, self.out, self.note, self.canvas, self._shown_tokens)
        before = self._shown_tokens + block_tokens(self.note)
        yield
        if before - self._shown_tokens - block_tokens(self.note) < max(1, worth):
            self.messages, self.sizes, self.decisions, self.thinking, self.cuts = saved
            self.dropped, self.out, self.note, self.canvas, self._shown_tokens = texts

    def _leave_out(self, exchanges: int) -> None:
        for exchange in self.exchanges[self.out : exchanges]:
            inside = range(exchange.start, exchange.end)
            self._shown_tokens -= sum(self.sizes[i] for i in inside if not is_system(self.messages[i]))
        self.out = exchanges

    def _put(self, index: int, message: dict[str, Any], level: Level, key: str | None, node: str | None) -> bool:
        size = count_message(message)
        if size >= self.sizes[index]:
            return False
        self._note_cut(index, level, self.sizes[index], size, key, node)
        self._shown_tokens += size - self.sizes[index]
        self.messages[index], self.sizes[index] = message, size
        return True

    def _note_cut(self, index: int, level: Level, before: int, after: int, key: str | None, node: str | None) -> None:
        self.canvas = self.fresh_canvas
        place = self._places[index]
        self.cuts.append(Cut(index=place, level=level, before=before, after=after, key=key, node=node))


def block_tokens(block: str) -> int:
    """What a block costs, with the message or part around it."""
    return count(block) + 6 if block else 0


def _user_text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if part.get("type") == "text"]
    return content_text(content)[0]
