"""`SyncMemory`: the same client for code without an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack

from lamina.client.forgetting import Ways
from lamina.client.memory import Memory
from lamina.errors import Closed
from lamina.records import Accepted, AsOf, Context, Hits, Link, Part, Prompt, Receipt, Stub, Where

T = TypeVar("T")


class SyncMemory:
    """`with SyncMemory.open(space="alice") as m`: every method of `Memory`, blocking.

    Runs a `Memory` on an event loop in a thread of its own; may be used from several threads at once. `close`
    (or leaving the `with`) ends both. The contracts are those of `Memory`.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lamina-sync", daemon=True)
        self._memory: Memory | None = None
        self._pid = os.getpid()

    @classmethod
    def open(
        cls,
        *,
        space: str,
        home: str | os.PathLike[str] | None = None,
        url: str | None = None,
        agent: str = "",
        project: str = "",
    ) -> Self:
        """As `Memory.open`; connects at once."""
        opening = Memory.open(space=space, home=home, url=url, agent=agent, project=project)
        self = cls()
        self._thread.start()
        try:
            self._memory = self._run(opening.open())
        except BaseException:
            self._end()
            raise
        return self

    def turn(
        self,
        role: str,
        text: str | bytes,
        *,
        session: str,
        name: str | None = None,
        time: datetime | str | None = None,
        turn_id: str | None = None,
    ) -> Accepted:
        return self._run(self._open.turn(role, text, session=session, name=name, time=time, turn_id=turn_id))

    def tool_result(
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
        return self._run(
            self._open.tool_result(
                tool, arguments, result, session=session, call_id=call_id, is_error=is_error, time=time
            )
        )

    def context(self, messages: Sequence[Mapping[str, Any]], *, session: str, window_tokens: int) -> Context:
        return self._run(self._open.context(messages, session=session, window_tokens=window_tokens))

    def end_session(self, session: str) -> Accepted:
        return self._run(self._open.end_session(session))

    def remember(self, text: str, *, session: str = "", time: datetime | str | None = None) -> Accepted:
        return self._run(self._open.remember(text, session=session, time=time))

    def recall(
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
        return self._run(
            self._open.recall(
                query,
                session=session,
                limit=limit,
                budget_tokens=budget_tokens,
                layers=layers,
                where=where,
                deadline_s=deadline_s,
                min_seq=min_seq,
                as_of=as_of,
                now=now,
                spaces=spaces,
                format=format,
            )
        )

    def prompt(self, session: str | None = None, *, as_of: AsOf | int | datetime | str | None = None) -> Prompt:
        return self._run(self._open.prompt(session, as_of=as_of))

    def read(
        self,
        node: str,
        *,
        query: str | None = None,
        lines: str | None = None,
        symbol: str | None = None,
        max_tokens: int = 1600,
    ) -> Part:
        return self._run(self._open.read(node, query=query, lines=lines, symbol=symbol, max_tokens=max_tokens))

    def correct(self, id: str, text: str, *, time: datetime | str | None = None) -> Accepted:
        return self._run(self._open.correct(id, text, time=time))

    def undo(self, id: str) -> Accepted:
        return self._run(self._open.undo(id))

    def forget(self, *, dry_run: bool = False, timeout_s: float = 600.0, **what: Unpack[Ways]) -> Receipt:
        return self._run(self._open.forget(dry_run=dry_run, timeout_s=timeout_s, **what))

    def why(self, id: str, *, as_of: AsOf | int | datetime | str | None = None) -> tuple[Link, ...]:
        return self._run(self._open.why(id, as_of=as_of))

    def settled(self, timeout_s: float = 30.0, layers: Sequence[str] | None = None) -> None:
        self._run(self._open.settled(timeout_s, layers))

    def close(self) -> None:
        """Idempotent."""
        if self._pid != os.getpid():
            self._memory = None  # a forked copy: loop, thread and connection are the parent's
        if self._memory is not None:
            memory, self._memory = self._memory, None
            asyncio.run_coroutine_threadsafe(memory.close(), self._loop).result()
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _open(self) -> Memory:
        if self._pid != os.getpid():
            raise Closed("this SyncMemory was opened in another process; open one in this one")
        if self._memory is None:
            raise Closed("this SyncMemory was closed; open another one")
        return self._memory

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
