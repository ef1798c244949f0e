"""`Memory`: one agent's way to its memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from msgspec import Raw, Struct

from lamina import events, ids, times
from lamina.client import inputs
from lamina.client.asking import asked_of
from lamina.client.contexts import Contexts
from lamina.client.forgetting import Ways, forgotten
from lamina.client.link import Link, check_same
from lamina.client.outbox import Waiting
from lamina.client.recalled import asked, digest, merged, not_noted, rendered, widened
from lamina.client.redact import Redactor
from lamina.client.stubs import stub_text, waiting_part
from lamina.client.targets import ASK_S, already, corrigible, undoable
from lamina.errors import Denied, Invalid, LaminaError, Timeout, Transient
from lamina.events import (
    Blob,
    Event,
    MemoryCorrected,
    MemoryStated,
    MemoryUndone,
    SessionEnded,
    ToolReturned,
    TurnRecorded,
)
from lamina.given import Give, Given
from lamina.home import Home
from lamina.records import Accepted, AsOf, Context, Degraded, Hits, Part, Prompt, Receipt, Stub, Where
from lamina.records import Link as WhyLink
from lamina.requests import Chain, Position, PromptOf, Read, Recall, Settled, Why
from lamina.tokens import count

if TYPE_CHECKING:
    from lamina.client.opening import Opening

R = TypeVar("R", bound=Struct)
REPLY_GRACE_S = 0.5
GIVE_SHARE = 0.2  # of the deadline, to ask what a session was given and again to note it
READ_S = 10.0
CLOSE_S = 30.0


class Memory:
    """A client of one space. Make it with `Memory.open`; it is owned by the task that opened it.

    Publishing returns once the event is fsynced in the log, or in this client's outbox while the log is away
    (`Accepted.seq` is None then). It raises `Invalid` or `TooLarge` for input that cannot be kept as it is,
    `Conflict` when the id given stands for something else already, `Full` when neither log nor outbox has room.
    What raised is not in the log; what was returned is never lost. Reading never raises for a part that is away:
    the answer says so.

    Order is kept per client and session for calls that wait for one another.
    """

    def __init__(self, link: Link, *, space: str, agent: str, project: str, redactor: Redactor | None = None) -> None:
        self._link = link
        self._space = space
        self._token = ids.token(space)
        self._agent = agent
        self._project = project
        self._published = False
        self._redactor = redactor or Redactor()
        self._contexts = Contexts(self, self.ask)

    @classmethod
    def open(
        cls,
        *,
        space: str,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        agent: str = "",
        project: str = "",
    ) -> Opening:
        """`async with Memory.open(space="alice") as m`.

        Connects to the daemon of `home` (default: LAMINA_HOME, else ~/.lamina), which is started when there is
        none, or to the NATS servers at `url`. Raises `Unavailable` when no daemon can be started, `Invalid` for
        a wrong configuration or id, `Denied` for wrong credentials or permissions.
        """
        from lamina.client.opening import Opening  # it makes what it opens

        return Opening(space, Home(home), url, agent, project)

    @property
    def space(self) -> str:
        return self._space

    async def turn(
        self,
        role: str,
        text: str | bytes,
        *,
        session: str,
        name: str | None = None,
        time: datetime | str | None = None,
        turn_id: str | None = None,
    ) -> Accepted:
        """Record what somebody said.

        `role` is user, assistant, system or tool; `name` is who spoke where the role does not say it. `time`
        (aware, or RFC 3339 with an offset) defaults to now. With `turn_id` publishing again is one event, and
        other text under the same id is `Conflict`. Blocks that `recall(format="prompt")` gave are left out.
        """
        content = inputs.said(text)
        data = TurnRecorded(
            role=inputs.role(role),
            text=content.text,
            name=inputs.name(name, "name"),
            turn_id=inputs.name(turn_id, "turn_id"),
        )
        return await self._record(data, content.blobs, inputs.session_id(session), turn_id, time)

    async def tool_result(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None,
        result: str | bytes,
        *,
        session: str,
        call_id: str | None = None,
        is_error: bool = False,
        time: datetime | str | None = None,
    ) -> Stub:
        """Record a tool call with its whole result; the stub that comes back stands for it in the context.

        A short result is its own stub. The stub is a pure function of the call: it waits for no model and for
        no service, only for the log (or the outbox) to have the event.
        """
        result = self._redactor.text(result)
        content = inputs.content(result, "result", empty=True)
        tool_name = inputs.name(tool, "tool")
        if tool_name is None:
            raise Invalid("tool must name the tool that was called")
        given = self._redactor.value(inputs.arguments(arguments))
        data = ToolReturned(
            tool=tool_name,
            arguments=given,
            result=content.text,
            call_id=inputs.name(call_id, "call_id"),
            is_error=is_error,
        )
        accepted = await self._record(data, content.blobs, inputs.session_id(session), call_id, time)
        node = ids.node_id(accepted.id)
        if call_id:
            self._contexts.recorded(session, call_id)
        text = await stub_text(node, tool_name, given, result, content, is_error=is_error)
        return Stub(node=node, text=text, id=accepted.id, seq=accepted.seq)

    async def context(self, messages: Sequence[Mapping[str, Any]], *, session: str, window_tokens: int) -> Context:
        """A message list (OpenAI or Anthropic) that fits `window_tokens`, from the one the agent has.

        Below half the window it is the list given. Above, older tool results become stubs that `read` opens,
        then more, in stages that change the prefix rarely; call and result pairs stay valid, the newest results
        whole. A result that was never recorded is recorded first. Every cut is an event. Give the host's own full
        list each time, or the list last answered with what came since. Raises `Invalid` for a list that no
        provider would take, `TooLarge` where even the least cannot fit, and whatever recording raises.
        """
        fitted, told = await self._contexts.fit(
            messages, inputs.session_id(session), inputs.whole(window_tokens, "window_tokens")
        )
        if told is not None:
            await self._record(told, (), session, None, None)
        return fitted

    async def end_session(self, session: str) -> Accepted:
        """Nothing more comes in `session`: what was learnt of it becomes due at once."""
        return await self._record(SessionEnded(), (), inputs.session_id(session), None, None)

    async def remember(self, text: str, *, session: str = "", time: datetime | str | None = None) -> Accepted:
        """State something to be remembered as it stands."""
        content = inputs.content(text, "text")
        return await self._record(MemoryStated(text=content.text), content.blobs, session, None, time)

    async def correct(self, id: str, text: str, *, time: datetime | str | None = None) -> Accepted:
        """State what holds instead of the memory `id` (of an item, or a `turn_id` of yours), which stays as history.

        `Invalid` where nothing has this id. While the log is away it is not asked: the correction waits in the
        outbox, and stands by itself should there be no such memory.
        """
        content = inputs.content(text, "text")
        target = await corrigible(self, id)
        return await self._record(MemoryCorrected(target=target, text=content.text), content.blobs, "", None, time)

    async def undo(self, id: str) -> Accepted:
        """Take back a whole extraction, reconciliation or correction by its event id (`why` names it), or the one
        that made the atom `id`: its atoms hold no more, and what they superseded holds again.

        `Invalid` where there is none, or it is undone already; `Unavailable` while that cannot be known.
        """
        target = await undoable(self, id)
        return await self._record(MemoryUndone(target=target), (), "", None, None)

    async def forget(self, *, dry_run: bool = False, timeout_s: float = 600.0, **what: Unpack[Ways]) -> Receipt:
        """Erase what is meant, said in exactly one way (`event=`, `turn=`, `node=`, `session=`, `between=`, `match=`,
        `entity=`, `all=True`: see `Ways`), and all that was made of it alone, everywhere and for good.

        `dry_run` tells what would go. `Invalid` for what is not there, `Denied` to a client with the rights of one
        space alone; after `Timeout` the daemon goes on, and its log says how it ended.
        """
        return await forgotten(self._link, self._token, what, dry_run=dry_run, timeout_s=timeout_s)

    async def recall(
        self,
        query: str,
        *,
        session: str | None = None,
        limit: int = 8,
        budget_tokens: int = 1500,
        layers: Sequence[str] | None = None,
        where: Where | None = None,
        deadline_s: float = 1.0,
        min_seq: int | None = None,
        as_of: AsOf | int | datetime | str | None = None,
        now: datetime | str | None = None,
        spaces: Sequence[str] | None = None,
        format: Literal["items", "prompt"] = "items",
    ) -> Hits:
        """What the memory holds about `query`: found, none, or unavailable (why, and what to do).

        At most `limit` items and `budget_tokens` tokens, within `deadline_s`. `min_seq` (an `Accepted.seq`)
        waits for that event to be searchable. `spaces` asks these instead of this one, the best of each in turn.
        `format="prompt"` also renders `.text`, an escaped block marked as data, and leaves out what `session` was
        given in such a block before, by whatever client (the query service knows, best effort). Raises `Invalid` for
        wrong arguments and nothing else.

        `as_of` asks the memory as it was known after an event (a position of the log, `17` or `"<epoch>:17"`), or at
        a time. Its views are made first: until they are, the answer is unavailable and says how far they are; a
        position of another epoch is `Conflict`.
        """
        names = asked(spaces, self._space, format)
        wait_s = inputs.seconds(deadline_s, "deadline_s")
        if not wait_s:
            raise Invalid("deadline_s must be above 0 seconds")
        request = Recall(
            query=inputs.query(query),
            session=session or "",
            limit=inputs.whole(limit, "limit"),
            budget_tokens=inputs.whole(budget_tokens, "budget_tokens"),
            layers=inputs.names(layers, "layers"),
            where=where or Where(),
            deadline_s=wait_s,
            min_seq=inputs.whole(min_seq, "min_seq") if min_seq is not None else 0,
            now=times.aware(now) if now is not None else None,
            as_of=inputs.as_of(as_of),
        )
        once = format == "prompt" and bool(session)
        given = await self._give(Give(session=request.session), GIVE_SHARE * wait_s) if once else None
        known = given.items if given is not None else {}
        answers = await asyncio.gather(*(self._recalled(name, widened(request, known)) for name in names))
        hits = merged(answers, limit, budget_tokens, known)
        if format != "prompt":
            return hits
        if once:
            items = {item.id: count(item.text) for item in hits.items}
            told = Give(session=request.session, items=items, persona=digest(hits.persona))
            if await self._give(told, GIVE_SHARE * wait_s) is None:
                hits = not_noted(hits)
        return rendered(hits, given)

    async def _give(self, request: Give, wait_s: float) -> Given | None:
        """What the session was given, as far as the query service knows; None where it cannot be asked."""
        try:
            return await self.ask("give", request, Given, wait_s)
        except Transient:
            return None

    async def _recalled(self, space: str, request: Recall) -> Hits:
        try:
            return await self.ask("recall", request, Hits, request.deadline_s + REPLY_GRACE_S, space=space)
        except Transient as error:
            part = Degraded("query", str(error), "start the daemon (`lamina up`) or see `lamina status`")
            return Hits(status="unavailable", degraded=(part,))

    async def prompt(self, session: str | None = None, *, as_of: AsOf | int | datetime | str | None = None) -> Prompt:
        """What is put before a model: `stable`, which changes only with what is known of the user, and `dynamic`,
        of `session`. Escaped blocks, never captured again; `Transient` while the daemon is away. `as_of` as in
        `why`."""
        return await self.ask("prompt", PromptOf(session=session or "", as_of=inputs.as_of(as_of)), Prompt, READ_S)

    async def read(
        self,
        node: str,
        *,
        query: str | None = None,
        lines: str | None = None,
        symbol: str | None = None,
        max_tokens: int = 1600,
    ) -> Part:
        """A piece of the tool result `node` of this space, exact, with line numbers.

        `query`: its best passages; `lines`: `"40"`, `"10-40"` or `"10-"`; `symbol`: a whole definition, such as
        `"Foo.bar"`; none of them: from its start. `omitted` says what was left out and how to get it. `Invalid`
        for an unknown node, a wrong range or two ways at once.
        """
        waiting = self._link.waiting(node)
        if waiting is not None:
            return waiting_part(node, waiting, query=query, lines=lines, symbol=symbol, max_tokens=max_tokens)
        request = Read(node=node, query=query, lines=lines, symbol=symbol, max_tokens=max_tokens)
        return await self.ask("read", request, Part, READ_S)

    async def why(self, id: str, *, as_of: AsOf | int | datetime | str | None = None) -> tuple[WhyLink, ...]:
        """The chain from a memory (its id, or a `turn_id` of yours) to the events it came from; `Invalid` for "".

        With `as_of` as in `recall`, `Unavailable` while the views of that moment are being made: ask again.
        """
        if not isinstance(id, str) or not id:
            raise Invalid("id must be the id of a memory, or a turn_id or call_id of yours")
        return (await self.ask("why", Why(id=id, as_of=inputs.as_of(as_of)), Chain, 5.0)).links

    async def settled(self, timeout_s: float = 30.0, layers: Sequence[str] | None = None) -> None:
        """Return once everything published before is folded and nothing of it is due.

        Back-off, dead letters and vectors are not waited for; `layers` may name services, so `["vectors"]`
        waits for them too. `Timeout` says what is behind, `Invalid` names an unknown layer.
        """
        until = monotonic() + inputs.seconds(timeout_s, "timeout_s")
        names = inputs.names(layers, "layers")
        try:
            async with asyncio.timeout(timeout_s):
                await self._link.emptied()
        except TimeoutError as error:
            raise Timeout(f"events still wait in the outbox after {timeout_s} s: the log is away") from error
        left_s = max(0.0, until - monotonic())
        request = Settled(timeout_s=left_s, layers=names)
        await self.ask("settled", request, Position, left_s + REPLY_GRACE_S)

    async def close(self) -> None:
        """Let go of the connection; what waits in the outbox stays there for the next client.

        Waits, at most 30 s, for what was published here to be in the views, so that a folder that is copied or
        removed next is at rest. Being cancelled ends the waiting; nothing depends on it.
        """
        try:
            if self._published and self._link.connected:
                with contextlib.suppress(LaminaError):
                    await self.settled(CLOSE_S)
        finally:
            await self._link.close()

    async def _record(
        self,
        data: Struct,
        contents: tuple[tuple[Blob, bytes], ...],
        session: str,
        given: str | None,
        time: datetime | str | None,
    ) -> Accepted:
        kind = events.type_of(data)
        id = ids.source_id(self._space, session, given, kind) if given else ids.uuid7()
        event = events.make(
            data,
            id=id,
            space=self._space,
            time=times.aware(time),
            session=session,
            agent=self._agent,
            project=self._project,
        )
        if given:
            known = await already(self, event)
            if known is not None:
                return known
        raw = events.encode(event)
        waiting = Waiting(ids.event_subject(self._token, kind), id, Raw(raw), tuple(b.sha256 for b, _ in contents))
        ack = await self._link.publish(waiting, contents)
        self._published = True
        if ack is not None and ack.duplicate:
            with contextlib.suppress(Transient):  # the views keep the first of an id, whatever this answer were
                await self._check_same(ack.seq, event)
        return Accepted(id, ack.seq if ack is not None else None)

    async def _check_same(self, seq: int, event: Event) -> None:
        """`Conflict` when the log holds other content under this id. Who may not read the log asks the journal."""
        try:
            await check_same(self._link.bus, seq, event)
        except Denied:
            await self.ask("settled", Settled(timeout_s=ASK_S, layers=("journal",), min_seq=seq), Position, 2 * ASK_S)
            await already(self, event)

    async def ask(
        self, verb: str, request: Struct, kind: type[R], timeout_s: float = 5.0, *, space: str | None = None
    ) -> R:
        """One request to the query service about this space or another, for tools that know `lamina.requests`.

        `Unavailable` when it is not there, `Timeout`, and whatever it refuses the request with.
        """
        subject = ids.rpc_subject(self._token if space is None else ids.token(space), verb)
        return await asked_of(self._link.bus, subject, request, kind, timeout_s)
