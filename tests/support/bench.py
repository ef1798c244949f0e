"""A home, a log in memory and workers of the toy service over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from lamina import events, ids
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.events import StepFailed
from lamina.home import Home
from lamina.runtime.spec import Act
from lamina.runtime.worker import Worker
from tests.support.toy import Clock, State, applied, digest, rows, running, say, toy, until, view_file


@dataclass
class Bench:
    home: Home
    log: MemoryLog = field(default_factory=MemoryLog)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.bus = MemoryBus(self.log)

    def worker(self, *, home: Home | None = None, clock: Clock | None = None, **more: Any) -> Worker[State]:
        """A worker that folds alone."""
        return Worker(toy(**more), MemoryBus(self.log), home or self.home, clock_us=clock or self.clock)

    def decider(self, act: Act = digest, **more: Any) -> Worker[State]:
        """A worker that folds and decides."""
        return self.worker(act=act, **more)

    async def folded(self, space: str = "alice", **more: Any) -> Worker[State]:
        """Run a worker up to the end of the log for `space`, and stop it."""
        worker = self.worker(**more)
        last = await self.bus.last(f"lamina.ev.*.{ids.token(space)}.>")
        assert last is not None
        async with running(worker):
            await until(lambda: applied(self.home, space) >= last.seq)
        return worker

    async def turns(self, *names: str, space: str = "alice") -> None:
        for name in names:
            await say(self.bus, name, id=name, space=space)

    def digests(self, home: Home | None = None, space: str = "alice") -> list[str]:
        found = rows(view_file(home or self.home, space), "SELECT inputs FROM digests ORDER BY n")
        return [row[0] for row in found]

    def logged(self, type: str) -> list[events.Event]:
        found = [events.decode(message.data) for message in self.log.messages.values()]
        return [event for event in found if event.type == type]

    def failures(self) -> list[StepFailed]:
        return [msgspec.json.decode(event.data, type=StepFailed) for event in self.logged("step.failed")]

    def refused(self, home: Home | None = None) -> list[tuple[Any, ...]]:
        return rows(view_file(home or self.home), "SELECT seq, tokens FROM refused")
