"""Scenarios for tests: a log in memory with the atoms and scenarios services over it, and what they left."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from lamina import events, times
from lamina.atoms.act import BuiltinAct
from lamina.atoms.builtin import VERSION as RULES
from lamina.atoms.builtin import extract
from lamina.bus.memory import MemoryBus
from lamina.events import AtomsExtracted, ScenarioEdited, ScenariosArranged, TurnRecorded
from lamina.home import Home
from lamina.knowledge import Atom, AtomType, Span, Standing
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

            await until(lambda: self.quiet(scenarios, where))

    def quiet(self, scenarios: Worker[State], home: Home) -> bool:
        """Is all of the log folded, and nothing due now?"""
        if applied(home, "alice", "scenarios") < self.log.last_seq:
            return False
        scenarios.decider.stop_waiting()
        return not self.waiting(home).pending or scenarios.decider.due.get("alice", 0) > self.clock()

    async def through(self, turns: Sequence[tuple[str, str, int]]) -> None:
        """A whole log through the built-in extractor and into scenarios, one service after the other."""
        last = ""
        for n, (session, text, at_s) in enumerate(turns):
            if last and session != last:
                await self.end(last)
            at_us = START_US + at_s * 1_000_000
            await self.publish(TurnRecorded(role="user", text=text), id=f"t{n}", session=session, at_us=at_us)
            last = session
        await self.end(last)
        rules = BuiltinAct(extract, name="builtin", version=RULES)
        atoms = self.worker(rules)
        async with running(atoms):
            await self.settled(atoms)
        reader, scenarios = self.worker(rules), self.scenarios()
        async with running(reader, scenarios):
            await until(lambda: self.quiet(scenarios, self.home), patience_s=600)

    async def replayed(self, home: Home) -> None:
        """The same log folded into another home; nothing is decided."""
        workers = self.worker(home=home), self.scenarios(home)
        async with running(*workers):
            for service in ("atoms", "scenarios"):
                await until(lambda: applied(home, "alice", service) >= self.log.last_seq)  # noqa: B023 - awaited here

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
    type: AtomType = "work_fact"


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
            atoms.append(Atom(type=one.type, text=one.text, sources=(Span(turn, 0, len(one.text)),)))
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


_DIARY = (
    "I moved the {thing} database to {tool} today.",
    "My {animal} only eats {food}.",
    "Always answer me in {language}.",
    "I decided to visit {place} with my sister next month.",
    "나는 {place}에서 {thing} 프로젝트를 시작했다.",
    "我今天在{place}吃了{food}。",
    "昨日{place}で{food}を食べました。",
    "I need to write the {thing} report by Friday.",
)
_WORDS = {
    "thing": ("orders", "billing", "search", "payments", "catalogue", "warehouse"),
    "tool": ("PostgreSQL", "SQLite", "DuckDB", "Redis"),
    "animal": ("cat Momo", "dog Rex", "parrot Kiwi"),
    "food": ("tuna", "rice", "mango", "김치", "拉面", "寿司"),
    "language": ("Korean", "English", "Japanese"),
    "place": ("Busan", "Kyoto", "Berlin", "上海", "서울"),
}


def diary(turns: int) -> list[tuple[str, str, int]]:
    """(session, text, seconds since the start) of a made-up year, always the same."""
    chance = random.Random(11)
    found = []
    for n in range(turns):
        words = {name: chance.choice(choices) for name, choices in _WORDS.items()}
        session = n // 6
        found.append((f"s{session}", chance.choice(_DIARY).format(**words), session * 40_000 + n % 6 * 45))
    return found


def derived(home: Home) -> dict[str, Any]:
    """What atoms and scenarios left of the space, and every file: without the times and durations of decisions, and
    without the ledger, which nobody kept here."""
    found: dict[str, Any] = {}
    for name, untold in (("atoms", {"at_us", "duration_ms", "known_us"}), ("scenarios", {"at_us"})):
        path = view_file(home, "alice", name)
        for (table,) in rows(path, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"):
            if table.startswith(("atoms_fts", "meta", "sqlite_")):
                continue
            columns = [row[0] for row in rows(path, f"SELECT name FROM pragma_table_info('{table}')")]
            kept = ", ".join(f'"{column}"' for column in columns if column not in untold)
            found[f"{name}.{table}"] = sorted(rows(path, f"SELECT {kept} FROM {table}"), key=repr)
    for file in sorted((home.spaces / "alice" / "scenarios").glob("*.md")):
        found[file.name] = file.read_text(encoding="utf-8")
    return found
