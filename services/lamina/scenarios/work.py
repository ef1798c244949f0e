"""The working set of one event: the atoms, episodes and scenarios it touches, and their files after it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from lamina.ids import token
from lamina.runtime import Change, Drop, DropFile, Put, Rows, WriteFile
from lamina.runtime.sealing import sealed
from lamina.scenarios import edits as by_hand
from lamina.scenarios import render, skill
from lamina.scenarios.decide import State
from lamina.scenarios.grouping import telling
from lamina.scenarios.render import Digest, Section
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
PART = "--"
"""Between the name of a scenario and the month, in the name of the file of that month."""
MOST_SECTIONS = 24
"""A scenario of more episodes has a file for every month before the last."""
MOST_TASKS = 100
"""So many open questions, the last ones, stand in the file of a scenario, others with the facts of their month."""


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
        self._stale: set[str] = set()
        self._left: set[tuple[str, str]] = set()
        self.rewritten: set[str] = set()
        """Scenarios of which every part is written again, whatever changed in it."""

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
        for source in dict.fromkeys((*strings(atom.sources), atom.decision)):
            self._put_made(source, (*self.made(source), atom.id))

    def drop_atom(self, atom: AtomRow) -> None:
        """Nothing of an atom is left but, where it was in an episode, a gap there."""
        self._atoms[atom.id] = None
        self._changed["atoms", atom.id] = None
        for source in dict.fromkeys((*strings(atom.sources), atom.decision)):
            self._put_made(source, tuple(one for one in self.made(source) if one != atom.id))
        episode = self.episode(atom.episode) if atom.episode else None
        if episode is not None:
            left = [one for one in self._atoms_of(episode) if one.id != atom.id]
            held = sorted(frozenset[str]().union(*(telling(one.text, one.subject) for one in left)))
            ids = json([one.id for one in left])
            self.put_episode(replace(episode, atoms=ids, words=len(held), held=json(held)))
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
        self._stale.add(episode.id)
        self._hold(old, episode)
        if old is not None:
            self._left.add((old.scenario, render.day(old.first_us)[:7]))
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
            self._hold(old, None)
            self._leave(old)
            self._episodes[id] = None
            self._changed["episodes", id] = None

    def _hold(self, old: EpisodeRow | None, new: EpisodeRow | None) -> None:
        """Which words stand in an episode, and when it begins, as they are from now on."""
        was = {(word, old.first_us, old.tie, old.id) for word in strings(old.held)} if old is not None else set()
        now = {(word, new.first_us, new.tie, new.id) for word in strings(new.held)} if new is not None else set()
        self.others += [Drop("holds", row) for row in sorted(was - now)]
        self.others += [Put("holds", row) for row in sorted(now - was)]

    def _leave(self, old: EpisodeRow) -> None:
        one = self.scenario(old.scenario) if old.scenario else None
        self._left.add((old.scenario, render.day(old.first_us)[:7]))
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
        if episode is not None:
            self.put_episode(episode)

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
        """The row and the files of a scenario: of many episodes those of the last month stand in its own file, those
        of each month before in one that is written when something of that month changes."""
        sections = self._sections(one)
        if not sections:
            return self._emptied(one)
        edits = by_hand.read(one.edits)
        months = _months(sections)
        last = max(months)
        shown = self._whole(sections if len(sections) <= MOST_SECTIONS else months[last])
        title, summary = render.about(shown if len(sections) == 1 else sections, edits)
        title = edits.title[1] or title
        files: list[Change] = []
        slug, written = one.slug, strings(one.parts)
        if slug and one.id in self._misnamed and not self._fits(slug, sections, title):
            files += [*self._no_files(one), Drop("slugs", (slug,))]
            slug, written, one = "", (), replace(one, steps=0)
        slug = slug or self._new_slug(render.slug(title, sections[0].episode.first_us), one.id)
        wanted = tuple(sorted(months.keys() - {last})) if len(sections) > MOST_SECTIONS else ()
        projects = [section.episode.project for section in sections if section.episode.project]
        one = replace(
            one,
            slug=slug,
            title=title,
            summary=summary,
            project=max(sorted(set(projects)), key=projects.count) if projects else "",
            status=edits.status or "open",
            merged="",
            atoms=sum(section.digest.facts for section in sections),
            mentions=sum(section.digest.mentions for section in sections),
            sessions=len({section.episode.session for section in sections}),
            first_us=sections[0].episode.first_us,
            last_us=max(section.episode.last_us for section in sections),
            seq=self.seq,
            parts=json(wanted),
        )
        learnt = shown if len(sections) <= MOST_SECTIONS else self._whole(sections[-MOST_SECTIONS:])
        done = skill.steps(learnt, edits)
        if done:
            files += _file(skill.path(slug), skill.document(one, learnt, done, edits))
        elif one.steps:
            files += _no_file(skill.path(slug))
        one = replace(one, steps=len(done), description=skill.description(one, edits) if done else "")
        self._scenarios[one.id] = one
        self._changed["scenarios", one.id] = None
        for month in sorted(set(written) - set(wanted)):
            files += _no_file(part_path(slug, month))
        for month in wanted:
            held = months[month]
            stale = one.id in self.rewritten or (one.id, month) in self._left
            if stale or month not in written or any(x.episode.id in self._stale for x in held):
                files += _file(part_path(slug, month), render.part(one, month, self._whole(held), edits))
        tasks = [atom for x in sections for id in x.digest.open if (atom := self.atom(id)) is not None]
        parts = [(month, part_path(slug, month), months[month]) for month in wanted]
        text = render.document(one, shown, parts, tasks[-MOST_TASKS:], edits)
        return [*files, *_file(path(slug), text)]

    def _sections(self, one: ScenarioRow) -> list[Section]:
        """The episodes of a scenario in the order of time, but those that have no atoms left."""
        found = []
        for id in strings(one.episodes):
            episode = self.episode(id)
            if episode is None:
                continue
            if id in self._stale or not episode.digest:
                digest = render.digest(self._atoms_of(episode))
                episode = replace(episode, digest=json(digest))
                self._episodes[id] = episode
                self._changed["episodes", id] = None
            else:
                digest = msgspec.json.decode(episode.digest, type=Digest)
            if digest.atoms:
                found.append(Section(episode, digest))
        return sorted(found, key=lambda x: (x.episode.first_us, x.episode.tie, x.episode.id))

    def _whole(self, sections: Sequence[Section]) -> list[Section]:
        return [Section(one.episode, one.digest, self._atoms_of(one.episode)) for one in sections]

    def _atoms_of(self, episode: EpisodeRow) -> tuple[AtomRow, ...]:
        return tuple(atom for id in strings(episode.atoms) if (atom := self.atom(id)) is not None)

    def _fits(self, slug: str, sections: Sequence[Section], title: str) -> bool:
        texts = (atom.text for one in self._whole(sections) for atom in one.atoms)
        return render.fits(slug, (title, *texts))

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
            parts="[]",
            steps=0,
            description="",
        )
        if not one.slug:
            return []
        gone = self._no_files(one)
        return gone if one.merged else [*gone, Drop("slugs", (one.slug,))]

    def _no_files(self, one: ScenarioRow) -> list[Change]:
        paths = [path(one.slug), *(part_path(one.slug, month) for month in strings(one.parts))]
        paths += [skill.path(one.slug)] if one.steps else []
        return [change for path_ in paths for change in _no_file(path_)]

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


def part_path(slug: str, month: str) -> str:
    """Where the file of a month of a scenario is."""
    return f"{FOLDER}/{token(slug)}{PART}{month}.md"


def _months(sections: Sequence[Section]) -> dict[str, list[Section]]:
    found: dict[str, list[Section]] = {}
    for one in sections:
        found.setdefault(render.day(one.episode.first_us)[:7], []).append(one)
    return found


def _file(path: str, text: str) -> list[Change]:
    return [WriteFile(path, sealed(text)), Put("files", (path, text))]


def _no_file(path: str) -> list[Change]:
    return [DropFile(path), Drop("files", (path,))]
