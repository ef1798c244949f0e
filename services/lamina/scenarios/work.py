"""The working set of one event: the atoms, episodes and scenarios it touches, and their files after it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lamina.ids import token
from lamina.runtime import Change, Drop, DropFile, Put, Rows, WriteFile
from lamina.runtime.sealing import sealed
from lamina.scenarios import edits as by_hand
from lamina.scenarios import render
from lamina.scenarios.decide import State
from lamina.scenarios.grouping import telling
from lamina.scenarios.render import Members
from lamina.scenarios.tables import (
    AtomRow,
    EpisodeRow,
    PendingRow,
    ScenarioRow,
    got,
    json,
    put,
    strings,
)

FOLDER = "scenarios"


class Work:
    """Reads rows once, shows its own changes, gives them back in the end. `state` is the space's after them."""

    def __init__(self, state: State, rows: Rows, seq: int) -> None:
        self.state = state
        self.rows = rows
        self.seq = seq
        self.others: list[Change] = []
        self._atoms: dict[str, AtomRow | None] = {}
        self._episodes: dict[str, EpisodeRow | None] = {}
        self._scenarios: dict[str, ScenarioRow | None] = {}
        self._slugs: dict[str, str] = {}
        self._made: dict[str, tuple[str, ...]] = {}
        self._changed: dict[tuple[str, str], None] = {}
        self._rendered: dict[str, None] = {}
        self._misnamed: set[str] = set()

    # atoms

    def atom(self, id: str) -> AtomRow | None:
        if id not in self._atoms:
            self._atoms[id] = got(self.rows, AtomRow, id)
        return self._atoms[id]

    def put_atom(self, atom: AtomRow) -> None:
        self._atoms[atom.id] = atom
        self._changed["atoms", atom.id] = None

    def add_atom(self, atom: AtomRow) -> None:
        """A new atom with its words, known to its sources and to the decision that made it."""
        self.state = replace(self.state, n=self.state.n + 1)
        self.put_atom(replace(atom, n=self.state.n))
        self.others += [Put("words", (word, atom.id)) for word in sorted(telling(atom.text, atom.subject))]
        for source in dict.fromkeys((*strings(atom.sources), atom.decision)):
            self._put_made(source, (*self.made(source), atom.id))

    def drop_atom(self, atom: AtomRow) -> None:
        """Nothing of an atom is left but, where it was in an episode, a gap there."""
        self._atoms[atom.id] = None
        self._changed["atoms", atom.id] = None
        self.others += [Drop("words", (word, atom.id)) for word in sorted(telling(atom.text, atom.subject))]
        for source in dict.fromkeys((*strings(atom.sources), atom.decision)):
            self._put_made(source, tuple(one for one in self.made(source) if one != atom.id))
        episode = self.episode(atom.episode) if atom.episode else None
        if episode is not None:
            left = tuple(one for one in strings(episode.atoms) if one != atom.id)
            self.put_episode(replace(episode, atoms=json(left)))
            self._misnamed.add(episode.scenario)

    def made(self, source: str) -> tuple[str, ...]:
        """The atoms that an event is a source of, or decided."""
        if source not in self._made:
            row = self.rows.get("made", (source,))
            self._made[source] = strings(row[1]) if row is not None else ()
        return self._made[source]

    def _put_made(self, source: str, atoms: tuple[str, ...]) -> None:
        self._made[source] = tuple(dict.fromkeys(atoms))
        self._changed["made", source] = None

    # episodes and scenarios

    def episode(self, id: str) -> EpisodeRow | None:
        if id not in self._episodes:
            self._episodes[id] = got(self.rows, EpisodeRow, id)
        return self._episodes[id]

    def put_episode(self, episode: EpisodeRow) -> None:
        """An episode as it is from now on; its scenarios before and now are written again."""
        old = self.episode(episode.id)
        self._episodes[episode.id] = episode
        self._changed["episodes", episode.id] = None
        if old is not None and old.scenario != episode.scenario:
            self._leave(old)
        if episode.scenario:
            one = self.scenario(episode.scenario) or ScenarioRow(id=episode.scenario, slug="")
            known = strings(one.episodes)
            if episode.id not in known:
                one = replace(one, episodes=json((*known, episode.id)))
            self.put_scenario(one)

    def drop_episode(self, id: str) -> None:
        old = self.episode(id)
        if old is not None:
            self._leave(old)
            self._episodes[id] = None
            self._changed["episodes", id] = None

    def _leave(self, old: EpisodeRow) -> None:
        one = self.scenario(old.scenario) if old.scenario else None
        if one is not None:
            left = [id for id in strings(one.episodes) if id != old.id]
            self.put_scenario(replace(one, episodes=json(left)))

    def scenario(self, id: str) -> ScenarioRow | None:
        if id not in self._scenarios:
            self._scenarios[id] = got(self.rows, ScenarioRow, id)
        return self._scenarios[id]

    def put_scenario(self, one: ScenarioRow) -> None:
        self._scenarios[one.id] = one
        self._changed["scenarios", one.id] = None
        self._rendered[one.id] = None

    def touch(self, atom: AtomRow) -> None:
        """What is said of an atom changed: the file of its scenario says so."""
        episode = self.episode(atom.episode) if atom.episode else None
        one = self.scenario(episode.scenario) if episode is not None else None
        if one is not None:
            self.put_scenario(one)

    def by_slug(self, slug: str) -> ScenarioRow | None:
        id = self._slug_of(slug)
        return self.scenario(id) if id else None

    # what waits

    def pending(self, id: str, kind: str, at_us: int, *, urgent: bool, episodes: Iterable[str] = ()) -> None:
        """Note that an event may have changed atoms."""
        if got(self.rows, PendingRow, id) is not None:
            return
        self.others.append(put(PendingRow(id, self.seq, kind, json(list(episodes)))))
        self.state = replace(
            self.state,
            pending=self.state.pending + 1,
            first_us=self.state.first_us if self.state.pending else at_us,
            last_us=at_us,
            urgent=self.state.urgent or urgent,
        )

    def seen(self, ids: Iterable[str], at_us: int) -> None:
        """A decision has looked at these events; what is left came while it was made, and waits from now on."""
        gone = [id for id in dict.fromkeys(ids) if got(self.rows, PendingRow, id) is not None]
        self.others += [Drop("pending", (id,)) for id in gone]
        left = self.state.pending - len(gone)
        self.state = replace(
            self.state, pending=left, first_us=at_us, urgent=self.state.urgent and left > 0, arranged_us=at_us
        )

    # the end

    def changes(self) -> list[Change]:
        """The rows of all that was touched, and the files of every touched scenario."""
        files: list[Change] = []
        for id in list(self._rendered):
            one = self.scenario(id)
            if one is not None:
                files += self._written(one)
        made: list[Change] = []
        for table, id in self._changed:
            made.append(self._change(table, id))
        return [*made, *self.others, *files]

    def _change(self, table: str, id: str) -> Change:
        if table == "made":
            return Put("made", (id, json(self._made[id]))) if self._made[id] else Drop("made", (id,))
        row = {"atoms": self._atoms, "episodes": self._episodes, "scenarios": self._scenarios}[table][id]  # type: ignore[index]  # a table each
        return put(row) if row is not None else Drop(table, (id,))

    def _written(self, one: ScenarioRow) -> list[Change]:
        members = self.members(one)
        atoms = members.atoms
        if not atoms:
            return self._emptied(one)
        edits = by_hand.read(one.edits)
        name = edits.title[1] or render.title(members)
        files: list[Change] = []
        slug = one.slug
        if slug and one.id in self._misnamed and not render.fits(slug, members, name):
            files += [*_no_file(slug), Drop("slugs", (slug,))]
            slug = ""
        slug = slug or self._new_slug(render.slug(name, atoms[0].time_us), one.id)
        projects = [atom.project for atom in atoms if atom.project]
        one = replace(
            one,
            slug=slug,
            title=name,
            summary=render.summary(members),
            project=max(sorted(set(projects)), key=projects.count) if projects else "",
            status=edits.status or "open",
            merged="",
            atoms=len(members.holding),
            mentions=sum(atom.count for atom in members.holding),
            sessions=len({atom.session for atom in atoms}),
            first_us=atoms[0].time_us,
            last_us=max(atom.time_us for atom in atoms),
            seq=self.seq,
        )
        self._scenarios[one.id] = one
        self._changed["scenarios", one.id] = None
        text = render.document(one, members, edits)
        return [*files, WriteFile(path(slug), sealed(text)), Put("files", (path(slug), text))]

    def _emptied(self, one: ScenarioRow) -> list[Change]:
        """Its slug leads to what took it over, if anything did; else nothing of it is left but its episodes' gaps."""
        self._scenarios[one.id] = replace(
            one,
            title="",
            summary="",
            status="merged",
            slug=one.slug if one.merged else "",
            edits="{}",
            atoms=0,
            mentions=0,
            sessions=0,
            seq=self.seq,
        )
        if not one.slug:
            return []
        return _no_file(one.slug) if one.merged else [*_no_file(one.slug), Drop("slugs", (one.slug,))]

    def members(self, one: ScenarioRow) -> Members:
        found = []
        for id in strings(one.episodes):
            episode = self.episode(id)
            atoms = tuple(atom for each in strings(episode.atoms) if (atom := self.atom(each))) if episode else ()
            if episode is not None and atoms:
                found.append((episode, atoms))
        return Members(tuple(sorted(found, key=lambda pair: (pair[0].first_us, pair[0].tie, pair[0].id))))

    def _new_slug(self, wanted: str, scenario: str) -> str:
        for name in (f"{wanted}-{scenario[:4]}", f"{wanted}-{scenario[:8]}", f"{wanted}-{scenario}"):
            if self._slug_of(name) in ("", scenario):
                break
        self._slugs[name] = scenario
        self.others.append(Put("slugs", (name, scenario)))
        return name

    def _slug_of(self, slug: str) -> str:
        if slug not in self._slugs:
            row = self.rows.get("slugs", (slug,))
            self._slugs[slug] = row[1] if row is not None else ""
        return self._slugs[slug]


def path(slug: str) -> str:
    """Where the file of a scenario is, in the folder of its space."""
    return f"{FOLDER}/{token(slug)}.md"


def _no_file(slug: str) -> list[Change]:
    return [DropFile(path(slug)), Drop("files", (path(slug),))]
