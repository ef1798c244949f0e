"""Scenarios for tests: a log in memory with the atoms and scenarios services over it, and what they left."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from lamina import events, times
from lamina.bus.memory import MemoryBus
from lamina.events import AtomsExtracted, ScenarioEdited, ScenariosArranged, TurnRecorded
from lamina.home import Home
from lamina.knowledge import Atom, Span, Standing
from lamina.runtime import Drop, DropFile, Put, Recorded, Wanted, WriteFile
from lamina.runtime.apply import Overlay
from lamina.runtime.worker import Worker
from lamina.scenarios.act import decision, known_atoms, made_by, plan
from lamina.scenarios.decide import ARRANGE, State
from lamina.scenarios.fold import TABLES, fold
from lamina.scenarios.service import service
from lamina.store.driver import driver
from tests.support.atoms import START_US, AtomsBench
from tests.support.toy import applied, rows, running, until, view_file


@dataclass
class ScenariosBench(AtomsBench):
    """Two workers over one log; the clock stands a year after what is said unless a test sets it."""

    def scenarios(self, home: Home | None = None) -> Worker[State]:
        return Worker(service(), MemoryBus(self.log), home or self.home, clock_us=self.clock)

    async def edit(self, slug: str, *, removed: tuple[str, ...] = (), added: tuple[str, ...] = ()) -> str:
        data = ScenarioEdited(path=f"scenarios/{slug}.md", removed=removed, added=added)
        return await self.publish(data, session="")

    async def arranged(self, home: Home | None = None) -> None:
        """Both services up to where nothing is due."""
        atoms, scenarios = self.worker(home=home), self.scenarios(home)
        where = home or self.home
        async with running(atoms, scenarios):
            await self.settled(atoms)

            def quiet() -> bool:
                if applied(where, "alice", "scenarios") < self.log.last_seq:
                    return False
                scenarios.decider.stop_waiting()
                return not self.waiting(where).pending or scenarios.decider.due.get("alice", 0) > self.clock()

            await until(quiet)

    def waiting(self, home: Home | None = None) -> State:
        found = self.seen("SELECT value FROM meta WHERE key = 'state'", home=home)
        return msgspec.json.decode(found[0][0], type=State) if found else State()

    def seen(self, sql: str, *values: object, home: Home | None = None) -> list[tuple[Any, ...]]:
        return rows(view_file(home or self.home, "alice", "scenarios"), sql, *values)

    def groups(self, home: Home | None = None) -> list[list[str]]:
        """The texts of every scenario, the one that begins first before the others."""
        found: dict[str, list[str]] = {}
        sql = "SELECT e.scenario, a.text FROM atoms a JOIN episodes e ON e.id = a.episode ORDER BY a.time_us, a.text"
        for scenario, text in self.seen(sql, home=home):
            found.setdefault(scenario, []).append(text)
        return list(found.values())

    def files(self, home: Home | None = None) -> dict[str, str]:
        folder = (home or self.home).spaces / "alice" / "scenarios"
        return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}

    def decisions(self) -> list[ScenariosArranged]:
        return [one for one in self._decided("scenarios.arranged") if isinstance(one, ScenariosArranged)]


def facts(text: str) -> list[str]:
    """The lines of a file that say something with a source mark, without it."""
    found = [re.sub(r" \[[0-9a-f]{8}\]$", "", line) for line in text.splitlines() if line.startswith("- ")]
    return [line.removeprefix("- ") for line in found]


class Said(Struct, frozen=True):
    """An atom to be: its words, when and where they were said, and how it stands."""

    text: str
    time_s: int
    session: str = "s"
    project: str = ""
    status: str = "active"


class Sim:
    """The fold and the decision by themselves, over a database in memory: what a space holds after some atoms."""

    def __init__(self) -> None:
        self.db: sqlite3.Connection = driver.connect(":memory:", isolation_level=None)
        for table in TABLES:
            for statement in table.ddl.split(";"):
                self.db.execute(statement)
        self.state = State()
        self.seq = 0
        self.n = 0
        self.at_us = START_US
        self.standing: dict[str, str] = {}
        self.files: dict[str, bytes] = {}

    def fold(
        self, data: Struct, *, id: str = "", session: str = "", project: str = "", at_us: int | None = None
    ) -> str:
        """One event into the rows and files."""
        self.seq += 1
        id = id or f"e{self.seq}"
        event = events.make(
            data,
            id=id,
            space="alice",
            session=session,
            project=project,
            time=times.from_micros(self.at_us if at_us is None else at_us),
        )
        raw = events.encode(event)
        overlay = Overlay(self.db, {table.name: table for table in TABLES})
        recorded = Recorded(seq=self.seq, at_us=self.at_us, raw=raw, event=event, data=data)  # type: ignore[arg-type]  # of an event
        self.state, changes = fold(self.state, recorded, overlay)
        for change in changes:
            if isinstance(change, WriteFile):
                self.files[change.path] = change.data
            elif isinstance(change, DropFile):
                self.files.pop(change.path, None)
            elif isinstance(change, Put | Drop):
                overlay.apply(change)
        overlay.write()
        return id

    def learn(self, *said: Said) -> str:
        """Turns, and one extraction with an atom of each."""
        atoms = []
        for one in said:
            turn = f"turn {one.session} {one.time_s} {one.text}"
            at_us = START_US + one.time_s * 1_000_000
            data = TurnRecorded(role="user", text=one.text)
            self.fold(data, id=turn, session=one.session, project=one.project, at_us=at_us)
            atoms.append(Atom(type="work_fact", text=one.text, sources=(Span(turn, 0, len(one.text)),)))
            self.standing[one.text] = one.status
        self.n += 1
        decided = AtomsExtracted(
            step="atoms.extract", n=self.n, inputs=(), windows=(), extractor="x", version="1", atoms=tuple(atoms)
        )
        return self.fold(decided)

    def arrange(self) -> ScenariosArranged:
        """A decision over all that waits."""
        wanted = plan(self.db, Wanted(ARRANGE, ()), 0, 0)
        assert wanted is not None
        own = made_by(self.db, wanted.ask.events)
        known = known_atoms(self.db, own + self.rows("SELECT id FROM atoms WHERE state = 1"))
        found = [Standing(atom=id, status=self.standing.get(row.text, "active")) for id, row in known.items()]
        data = decision(self.db, wanted.ask, known, found)
        self.n += 1
        arranged = ScenariosArranged(step=ARRANGE, n=self.n, inputs=wanted.inputs, **data)
        self.fold(arranged)
        return arranged

    def arrange_all(self) -> None:
        while self.state.pending:
            self.arrange()

    def rows(self, sql: str, *values: object) -> list[Any]:
        found = self.db.execute(sql, values).fetchall()
        return [row[0] if len(row) == 1 else row for row in found]

    def groups(self) -> set[frozenset[str]]:
        """The texts of each scenario."""
        return self._texts("e.scenario")

    def episodes(self) -> set[frozenset[str]]:
        return self._texts("e.id")

    def titles(self) -> list[tuple[str, str]]:
        return sorted(self.rows("SELECT title, summary FROM scenarios WHERE status <> 'merged'"))

    def _texts(self, column: str) -> set[frozenset[str]]:
        found: dict[str, set[str]] = {}
        for key, text in self.rows(f"SELECT {column}, a.text FROM atoms a JOIN episodes e ON e.id = a.episode"):
            found.setdefault(key, set()).add(text)
        return {frozenset(texts) for texts in found.values()}
