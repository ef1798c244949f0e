"""Fitting a message list into its window: what the host shows is recorded first, then cut, and each cut is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from lamina import context, digest, ids
from lamina.errors import Conflict, Transient
from lamina.events import ContextCut, CutMade
from lamina.records import Context, Stub
from lamina.requests import FitState, FitStateIs, Known, KnownIds

ASK_S = 2.0
MAX_KNOWN = 10_000


class Recorder(Protocol):
    """What fitting needs of a `Memory`."""

    @property
    def space(self) -> str: ...

    async def tool_result(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None,
        result: str | bytes,
        *,
        session: str,
        call_id: str | None = None,
        is_error: bool = False,
    ) -> Stub: ...


class Contexts:
    """The fitting states of one client's sessions, and which calls it knows to be recorded."""

    def __init__(self, memory: Recorder, ask: Callable[..., Awaitable[Any]]) -> None:
        self._memory = memory
        self._ask = ask
        self._states: dict[str, context.State] = {}
        self._known: set[tuple[str, str]] = set()
        self._stubs: dict[tuple[str, str, int], context.Known] = {}

    def recorded(self, session: str, call_id: str) -> None:
        """A call of this session is in the log or the outbox."""
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()  # to be asked for again, that is all
        self._known.add((session, call_id))

    async def fit(
        self, messages: Sequence[Mapping[str, Any]], session: str, window_tokens: int
    ) -> tuple[Context, ContextCut | None]:
        """The fitted list, and the event that tells of the cuts, if any were made."""
        state, canvas = await self._state(session)

        def attempt() -> context.Fitted:
            return context.fit(
                messages, window_tokens, state=state, stubs=lambda seen: self._stub(session, seen), canvas=canvas
            )

        fitted = await asyncio.to_thread(attempt)
        if fitted.unrecorded:
            await self._record(session, fitted.unrecorded)
            fitted = await asyncio.to_thread(attempt)
        self._states[session] = fitted.state
        answer = Context(messages=fitted.messages, before=fitted.before, tokens=fitted.tokens, cuts=len(fitted.cuts))
        if not fitted.cuts:
            return answer, None
        cuts = tuple(msgspec.convert(msgspec.structs.asdict(cut), CutMade) for cut in fitted.cuts)
        told = ContextCut(
            window_tokens=window_tokens,
            before=fitted.before,
            after=fitted.tokens,
            cuts=cuts,
            state=msgspec.to_builtins(fitted.state),
        )
        return answer, told

    async def _state(self, session: str) -> tuple[context.State, str]:
        """Where the session's last fit left off, here or in another client; a fresh start when nobody knows."""
        known = self._states.get(session)
        try:
            answer: FitStateIs = await self._ask("fit-state", FitState(session=session), FitStateIs, ASK_S)
        except Transient:
            return known or context.State(), ""
        if known is None and answer.state:
            try:
                known = msgspec.convert(answer.state, context.State)
            except msgspec.ValidationError:  # written by another version: a fresh start costs one new prefix
                known = None
        return known or context.State(), answer.canvas

    def _stub(self, session: str, seen: context.Observation) -> context.Known | None:
        if (session, seen.key) not in self._known:
            return None
        place = (session, seen.key, hash(seen.text))
        if place not in self._stubs:
            if len(self._stubs) >= MAX_KNOWN:
                self._stubs.clear()
            self._stubs[place] = self._made(session, seen)
        return self._stubs[place]

    def _made(self, session: str, seen: context.Observation) -> context.Known:
        node = ids.node_id(ids.source_id(self._memory.space, session, seen.key, "tool.returned"))
        return context.Known(node, digest.stub(node, seen.tool, _arguments(seen), seen.text, is_error=seen.is_error))

    async def _record(self, session: str, observations: Sequence[context.Observation]) -> None:
        """Record what the log does not hold; what it holds under the same id stands, whatever the host shows."""
        space = self._memory.space
        by_id = {ids.source_id(space, session, seen.key, "tool.returned"): seen for seen in observations}
        try:
            answer: KnownIds = await self._ask("known", Known(ids=tuple(by_id)), KnownIds, ASK_S)
            there = set(answer.ids)
        except Transient:
            there = set()
        for id, seen in by_id.items():
            if id not in there:
                # recorded with other content meanwhile: that is the one that `read` opens
                with contextlib.suppress(Conflict):
                    await self._memory.tool_result(
                        seen.tool or "tool",
                        _arguments(seen),
                        seen.text,
                        session=session,
                        call_id=seen.key,
                        is_error=seen.is_error,
                    )
            self.recorded(session, seen.key)


def _arguments(seen: context.Observation) -> dict[str, Any]:
    """The arguments of a call as an object, whatever form the host gave them in."""
    try:
        given = msgspec.json.decode(seen.arguments)
    except msgspec.MsgspecError:
        given = None
    if isinstance(given, dict):
        return given
    return {"arguments": seen.arguments} if seen.arguments else {}
