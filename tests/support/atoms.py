"""Atoms for tests: an extractor that anyone can foretell, a log to feed the service with, and what it left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from lamina import events, ids, times
from lamina.atoms.act import BuiltinAct
from lamina.atoms.builtin import VERSION, extract
from lamina.atoms.service import BUILTIN, made
from lamina.atoms.turns import Turn
from lamina.atoms.work import State
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import Invalid
from lamina.events import (
    AtomsExtracted,
    AtomsReconciled,
    MemoryCorrected,
    MemoryForgotten,
    MemoryStated,
    MemoryUndone,
    SessionEnded,
    StepFailed,
    ToolReturned,
    TurnRecorded,
)
from lamina.home import Home
from lamina.knowledge import Atom, Span
from lamina.runtime.spec import Act, Service
from lamina.runtime.worker import Worker
from tests.support.toy import Clock, applied, rows, running, until, view_file

START_US = 1_764_000_000_000_000


def plain(window: Sequence[Turn], context: Sequence[Turn] = ()) -> tuple[Atom, ...]:
    """An atom of every line `fact`, with a slot where it reads `slot=value`; `unfit` makes it fail."""
    found = []
    for turn in window:
        if "unfit" in turn.text:
            raise Invalid("this turn cannot be taken")
        if turn.kind == "tool":
            continue
        for line in turn.text.splitlines():
            if not line or line.startswith("hm"):
                continue
            start = turn.text.index(line)
            slot, _, value = line.partition("=") if "=" in line else ("", "", "")
            spans = (Span(turn.id, start, start + len(line)),)
            found.append(
                Atom(
                    type="work_fact" if slot.startswith("work") else "persona",
                    text=line,
                    sources=spans,
                    subject="user",
                    slot=slot,
                    value=value,
                    quarantine="it instructs the memory" if "ignore all" in line else "",
                )
            )
    return tuple(found)


def plain_act() -> BuiltinAct:
    return BuiltinAct(plain, name="plain", version="1")


def plain_service(act: Act | None = None) -> Service[State]:
    return made(act or plain_act(), BUILTIN)


@dataclass
class AtomsBench:
    """A home, a log in memory, and atoms workers over it."""

    home: Home
    log: MemoryLog = field(default_factory=MemoryLog)
    clock: Clock = field(default_factory=Clock)
    now_us: int = START_US
    _ids: int = 0

    def __post_init__(self) -> None:
        self.bus = MemoryBus(self.log)

    def worker(self, act: Act | None = None, home: Home | None = None) -> Worker[State]:
        return Worker(plain_service(act), MemoryBus(self.log), home or self.home, clock_us=self.clock)

    def builtin(self) -> Worker[State]:
        """A worker with the extractor of the product."""
        return Worker(made(BuiltinAct(extract, name="builtin", version=VERSION), BUILTIN), self.bus, self.home)

    async def say(
        self,
        text: str,
        *,
        id: str = "",
        session: str = "s",
        name: str | None = None,
        role: str = "user",
        after_s: float = 1.0,
        at_us: int | None = None,
    ) -> str:
        """A turn, one second after what was said before it unless told otherwise."""
        self.now_us += int(after_s * 1e6)
        return await self.publish(TurnRecorded(role=role, text=text, name=name), id=id, session=session, at_us=at_us)

    async def publish(self, data: Struct, *, id: str = "", session: str = "s", at_us: int | None = None) -> str:
        self._ids += 1
        id = id or f"e{self._ids}"
        time = times.from_micros(self.now_us if at_us is None else at_us)
        event = events.make(data, id=id, space="alice", session=session, time=time)
        subject = ids.event_subject("alice", event.type)
        await self.bus.publish(subject, events.encode(event))
        return id

    async def tool(self, text: str, **more: Any) -> str:
        return await self.publish(ToolReturned(tool="run", arguments={}, result=text), **more)

    async def state(self, text: str, **more: Any) -> str:
        return await self.publish(MemoryStated(text=text), **more)

    async def end(self, session: str = "s") -> str:
        return await self.publish(SessionEnded(), session=session)

    async def correct(self, target: str, text: str, **more: Any) -> str:
        return await self.publish(MemoryCorrected(target=target, text=text), **more)

    async def undo(self, target: str) -> str:
        return await self.publish(MemoryUndone(target=target), session="")

    async def forget(self, *targets: str) -> str:
        return await self.publish(MemoryForgotten(ids=targets), session="")

    async def settled(self, worker: Worker[State]) -> None:
        """Return once all of the log is folded and nothing is due now."""

        def quiet() -> bool:
            if applied(self.home, "alice", "atoms") < self.log.last_seq:
                return False
            found, now = self.counts(), self.clock()
            idle = found.open > 0 and found.idle_us <= now and worker.decider.due.get("alice", 0) <= now
            return not found.due and not found.unreconciled and not idle

        await until(quiet)

    async def run(self, act: Act | None = None) -> None:
        """A worker up to where nothing is due."""
        worker = self.worker(act)
        async with running(worker):
            await self.settled(worker)

    def counts(self) -> State:
        found = self.rows("SELECT value FROM meta WHERE key = 'state'")
        return msgspec.json.decode(found[0][0], type=State) if found else State()

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return rows(view_file(self.home, "alice", "atoms"), sql, *values)

    def atoms(self) -> dict[str, tuple[Any, ...]]:
        """Text -> (status, count), of all atoms; of two of one text the one that stands."""
        found = self.rows("SELECT text, status, count FROM atoms ORDER BY status = 'active', n")
        return {row[0]: row[1:] for row in found}

    def standing(self) -> dict[str, str]:
        return {text: found[0] for text, found in self.atoms().items()}

    def outcomes(self) -> dict[str, int]:
        return dict(self.rows("SELECT id, outcome FROM turns"))

    def extractions(self) -> list[AtomsExtracted]:
        return [one for one in self._decided("atoms.extracted") if isinstance(one, AtomsExtracted)]

    def reconciliations(self) -> list[AtomsReconciled]:
        return [one for one in self._decided("atoms.reconciled") if isinstance(one, AtomsReconciled)]

    def failures(self) -> list[StepFailed]:
        return [one for one in self._decided("step.failed") if isinstance(one, StepFailed)]

    def decision_ids(self, type: str) -> list[str]:
        return [event.id for event in self._logged() if event.type == type]

    def _logged(self) -> list[events.Event]:
        return [events.decode(message.data) for message in self.log.messages.values()]

    def _decided(self, type: str) -> list[events.Data | None]:
        return [events.decode_data(event) for event in self._logged() if event.type == type]
