"""A persona for tests: the atoms of an extractor that anyone can foretell, and both services over one log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from lamina.atoms.act import BuiltinAct
from lamina.atoms.service import BUILTIN, made
from lamina.atoms.turns import Turn
from lamina.bus.memory import MemoryBus
from lamina.events import PersonaEdited, PersonaRevised, TurnRecorded
from lamina.knowledge import Atom, Span
from lamina.persona.fold import State
from lamina.persona.service import service
from lamina.runtime.worker import Worker
from tests.support.atoms import AtomsBench
from tests.support.toy import applied, dump, rows, running, until, view_file

_KINDS = {"always": "global", "here": "project", "now": "scenario", "ask": ""}


def worded(window: Sequence[Turn], context: Sequence[Turn] = ()) -> tuple[Atom, ...]:
    """An atom of every line: `always|here|now|ask: text` an instruction of that scope, `slot=value` of a slot,
    `way: text` a method, `who says text` a statement of somebody's, `maybe: text` an unclear one."""
    found = []
    for turn in window:
        for line in turn.text.splitlines() if turn.kind != "tool" else ():
            word, _, rest = line.partition(": ")
            slot, _, value = line.partition("=") if "=" in line and word not in _KINDS else ("", "", "")
            start = turn.text.index(line)
            kind = "instruction" if word in _KINDS else "work_method" if word == "way" else "persona"
            if kind == "instruction" and "=" in word:
                continue
            found.append(
                Atom(
                    type=kind,  # type: ignore[arg-type]  # one of the three
                    text=f"User: {rest if word in (*_KINDS, 'way', 'maybe') else line}",
                    sources=(Span(turn.id, start, start + len(line)),),
                    subject="user" if slot else turn.name or "user",
                    slot=slot,
                    value=value,
                    scope=_KINDS.get(word, ""),  # type: ignore[arg-type]  # one of the scopes
                    priority=35 if word == "maybe" else 90 if word in _KINDS else 60,
                )
            )
    return tuple(found)


def worded_act() -> BuiltinAct:
    return BuiltinAct(worded, name="worded", version="1")


@dataclass
class PersonaBench(AtomsBench):
    """A home, a log in memory, atoms and persona over it."""

    def persona(self) -> Worker[State]:
        return Worker(service(), MemoryBus(self.log), self.home, clock_us=self.clock)

    async def run(self, act: Any = None) -> None:
        """Atoms and persona up to where nothing is due in either."""
        self.clock.now_us = max(self.clock.now_us, self.now_us) + 60_000_000
        async with AsyncExitStack() as stack:
            worker = self.worker(act or worded_act())
            await stack.enter_async_context(running(worker))
            await self.settled(worker)
            await stack.enter_async_context(running(self.persona()))
            await until(self._quiet)

    def worker(self, act: Any = None, home: Any = None) -> Worker[Any]:
        kept = made(act, BUILTIN)
        return Worker(kept, MemoryBus(self.log), home or self.home, clock_us=self.clock)

    def _quiet(self) -> bool:
        at = self.log.last_seq
        return (
            applied(self.home, "alice", "persona") >= at
            and applied(self.home, "alice", "atoms") >= at
            and not self.shape().pending
        )

    def shape(self) -> State:
        found = self.persona_rows("SELECT value FROM meta WHERE key = 'state'")
        return msgspec.json.decode(found[0][0], type=State) if found else State()

    def persona_rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return rows(view_file(self.home, "alice", "persona"), sql, *values)

    @property
    def file(self) -> Path:
        return self.home.spaces / "alice" / "persona.md"

    def text(self) -> str:
        return self.file.read_text(encoding="utf-8") if self.file.exists() else ""

    def sections(self) -> dict[str, list[str]]:
        """Heading -> its lines, without their marks."""
        found: dict[str, list[str]] = {}
        under = ""
        for line in self.text().splitlines():
            if line.startswith("#"):
                under = line.lstrip("# ")
            elif line.startswith("- "):
                found.setdefault(under, []).append(line[2:].rsplit(" · ", 1)[0])
        return found

    def mark(self, text: str) -> str:
        """The mark of the line that says this."""
        return next(line.rsplit(" · ", 1)[1] for line in self.text().splitlines() if text in line)

    async def edit(self, removed: Sequence[str] = (), added: Sequence[str] = (), under: Sequence[str] = ()) -> str:
        data = PersonaEdited(path="persona.md", removed=tuple(removed), added=tuple(added), under=tuple(under))
        return await self.publish(data, session="")

    async def publish_named(self, text: str, *, name: str, id: str, session: str) -> str:
        """A turn of somebody who is not the user, about the user."""
        return await self.publish(TurnRecorded(role="user", text=text, name=name), id=id, session=session)

    @asynccontextmanager
    async def folding(self) -> AsyncIterator[None]:
        """Once all of the log is folded; nothing is decided."""
        worker = Worker(replace(service(), decide=None), MemoryBus(self.log), self.home, clock_us=self.clock)
        async with running(worker):
            await worker.follower.touch("alice", None)
            await until(lambda: applied(self.home, "alice", "persona") >= self.log.last_seq)
            yield

    def line(self, text: str) -> str:
        """The whole line of the file that says this."""
        return next(line for line in self.text().splitlines() if text in line)

    def view_dump(self) -> Any:
        return dump(self.home, "alice", "persona")

    def lose_view(self) -> None:
        view_file(self.home, "alice", "persona").unlink()

    def revisions(self) -> list[PersonaRevised]:
        return [one for one in self._decided("persona.revised") if isinstance(one, PersonaRevised)]
