"""Arranging: which episodes new and changed atoms make, what each goes on from, and to which scenario it belongs.

Only what the changed atoms touch is looked at again: their sessions (a day of them, or what lies around a moment),
the episodes that share a telling word with them and begin later, those for which a word ceased to tell or began to,
and those that went on from an episode that is no more.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.ids import derived_id
from lamina.knowledge import Episode, ScenarioOperation, ScenarioVerb
from lamina.scenarios import grouping
from lamina.scenarios.grouping import ENOUGH, KEY, LATELY_US, Link, before, weight
from lamina.scenarios.space import Space, of_a_day
from lamina.scenarios.tables import AtomRow, EpisodeRow, strings


class Arranged(Struct, frozen=True):
    """What is different from now on; see `lamina.data.ScenariosArranged`."""

    episodes: tuple[Episode, ...]
    gone: tuple[str, ...]
    operations: tuple[ScenarioOperation, ...]


def arrange(
    db: sqlite3.Connection, new: Sequence[str], *, without: Sequence[str] = (), touched: Sequence[str] = ()
) -> Arranged:
    """Take the atoms `new` in, those of `without` out, and look at the episodes `touched` again."""
    space = Space(db)
    _cut(space, new, frozenset(without), touched)
    links = _linked(space, touched)
    scenarios = _Scenarios(space)
    scenarios.settle(links)
    kept = sorted(space.changed.values(), key=KEY)
    return Arranged(
        tuple(
            Episode(
                id=one.id, atoms=strings(one.atoms), scenario=scenarios.of(one.id), parent=one.parent, score=one.score
            )
            for one in kept
        ),
        tuple(sorted(space.gone)),
        scenarios.operations(links),
    )


# episodes


def _cut(space: Space, new: Sequence[str], without: frozenset[str], touched: Sequence[str]) -> None:
    """The episodes of every session that atoms came to or left, as they are with the new atoms."""
    fresh = [atom for atom in space.atoms(new) if not atom.episode and atom.id not in without]
    left = [atom for atom in space.atoms(tuple(without)) if atom.episode]
    again = [episode for id in touched if (episode := space.stored(id)) is not None]
    places: dict[tuple[str, str], list[AtomRow]] = {(one.session, one.project): [] for one in left}
    places |= {(one.session, one.project): [] for one in again}
    for atom in fresh:
        places.setdefault((atom.session, atom.project), []).append(atom)
    for place, added in places.items():
        lost = [atom for atom in left if (atom.session, atom.project) == place]
        ids = [one.id for one in again if (one.session, one.project) == place]
        _cut_place(space, place, added, lost, ids)


def _cut_place(
    space: Space,
    place: tuple[str, str],
    added: Sequence[AtomRow],
    left: Sequence[AtomRow],
    touched: Sequence[str],
) -> None:
    """A session that is over within a day is one episode; of a longer one only what lies around is cut again."""
    gone = {atom.id for atom in left}
    was = space.span(*place, tuple(gone))
    if of_a_day(was):
        near = space.all_of(*place)
    else:
        near = [id for atom in (*added, *left) for id in space.around(*place, atom.time_us)]
    olds = [old for id in dict.fromkeys((*near, *touched)) if (old := space.stored(id)) is not None]
    held = [atom for old in olds for atom in space.atoms(strings(old.atoms)) if atom.id not in gone]
    times = [atom.time_us for atom in added] + list(was or ())
    now = (min(times), max(times)) if times else None
    _put(space, olds, grouping.runs([*held, *added], whole=of_a_day(now)))


def _put(space: Space, olds: Sequence[EpisodeRow], runs: Sequence[Sequence[AtomRow]]) -> None:
    """Runs of atoms as episodes: each keeps the id of the old one that most of its atoms were in."""
    taken: dict[int, str] = {}
    free = {old.id for old in olds}
    shares = Counter((at, atom.episode) for at, run in enumerate(runs) for atom in run if atom.episode in free)
    for (at, id), _ in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])):
        if at not in taken and id in free:
            taken[at] = id
            free.discard(id)
    for old in olds:
        if old.id in free:
            space.drop(old)
    by_id = {old.id: old for old in olds}
    for at, run in enumerate(runs):
        known = by_id.get(taken.get(at, ""))
        episode = grouping.episode(known.id if known is not None else _unused(space, run[0]), run)
        if known is None or known.atoms != episode.atoms:
            space.put(replace(episode, scenario=known.scenario if known is not None else ""))


def _unused(space: Space, first: AtomRow) -> str:
    n = 0
    while True:
        id = derived_id("episode", first.id, n)
        if space.get(id) is None and id not in space.gone:
            return id
        n += 1


# what goes on from what


def _linked(space: Space, touched: Sequence[str]) -> dict[str, Link]:
    """What every episode goes on from for which that may be another than before."""
    links: dict[str, Link] = {}
    for id in dict.fromkeys((*touched, *_affected(space))):
        episode = space.get(id)
        if episode is None:
            continue
        link = _link(space, episode)
        if id in space.changed or link.parent != episode.parent or link.score != episode.score:
            links[id] = link
    for id, link in links.items():  # only now: while candidates are compared nothing moves
        episode = space.get(id)
        if episode is not None:
            space.put(replace(episode, parent=link.parent, score=link.score))
    return links


def _affected(space: Space) -> list[str]:
    """The episodes that are new or changed, those that went on from one, and those that begin after one and may go on
    from it by a word, or by their project; or whose candidates are others because of it."""
    changed, gone = list(space.changed.values()), list(space.gone.values())
    was = [stored for one in changed if (stored := space.stored(one.id)) is not None]
    found: dict[str, None] = dict.fromkeys(one.id for one in changed)
    for one in (*was, *gone):
        found |= dict.fromkeys(space.stored_children(one.id))
    for one in (*changed, *was, *gone):
        for word in strings(one.held):
            found |= dict.fromkeys(other.id for other in space.after(word, one))
        following = space.neighbour(one, earlier=False)
        if following is not None:
            found[following.id] = None
    return list(found)


def _link(space: Space, episode: EpisodeRow) -> Link:
    """The earlier episode that it goes on from most; of two alike the later one."""
    shared: dict[str, list[float]] = {}
    candidates: dict[str, EpisodeRow] = {}
    for word in strings(episode.held):
        holding = space.before(word, episode)
        worth = weight(sum(episode.first_us - other.first_us <= LATELY_US for other in holding))
        for other in holding if worth else ():
            candidates[other.id] = other
            shared.setdefault(other.id, []).append(worth)
    same = space.neighbour(episode, earlier=True)
    if same is not None:
        candidates[same.id] = same
    best, best_row = Link(), None
    for id, other in candidates.items():
        words = shared.get(id, [])
        worth = grouping.score(episode, other, sum(words))
        better = worth > best.score or (worth == best.score and best_row is not None and before(best_row, other))
        if worth >= ENOUGH and better:
            best, best_row = Link(id, worth, len(words)), other
    return best


# scenarios


class _Scenarios:
    """To which scenario each episode belongs: to that of what it goes on from. What begins something keeps the
    scenario that it began, or takes over one that goes on from it."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._now: dict[str, str] = {}
        self._was: dict[str, str] = {}
        self._claimed: set[str] = set()

    def of(self, episode: str) -> str:
        if episode in self._now:
            return self._now[episode]
        row = self._space.get(episode)
        return row.scenario if row is not None else ""

    def settle(self, links: dict[str, Link]) -> None:
        moved = [row for id in links if (row := self._space.get(id)) is not None]
        for row in sorted(moved, key=KEY):  # what it goes on from is earlier, and settled before it
            if row.parent:
                self._place(row.id, self.of(row.parent))
            else:
                self._place(row.id, self._own(row))

    def _own(self, row: EpisodeRow) -> str:
        """The scenario of an episode that goes on from nothing."""
        known = self.of(row.id)
        root = self._space.root(known) if known else ""
        free = known not in self._claimed and (root in ("", row.id) or not self._begins(root))
        if known and free:
            self._claimed.add(known)
            return known
        adopted = [] if known else [self._began(child) for child in self._space.children(row.id)]
        candidates = sorted((-self._space.size(one), one) for one in adopted if one and one not in self._claimed)
        made = candidates[0][1] if candidates else self._made(row)
        self._claimed.add(made)
        return made

    def _begins(self, episode: str) -> bool:
        row = self._space.get(episode)
        return row is not None and not row.parent

    def _began(self, episode: str) -> str:
        """The scenario that an episode began before this decision."""
        row = self._space.stored(episode)
        return row.scenario if row is not None and not row.parent else ""

    def _made(self, row: EpisodeRow) -> str:
        sources = strings(self._space.atoms(strings(row.atoms))[0].sources)
        n = 0
        while True:
            id = derived_id("scenario", *sources[:1], n)
            if id not in self._claimed and not self._space.root(id):
                return id
            n += 1

    def _place(self, episode: str, scenario: str) -> None:
        """An episode and what goes on from it into a scenario."""
        waiting = [episode]
        while waiting:
            one = waiting.pop()
            known = self.of(one)
            if known == scenario:
                continue
            self._was.setdefault(one, known)
            self._now[one] = scenario
            waiting += self._space.children(one)

    def operations(self, links: dict[str, Link]) -> tuple[ScenarioOperation, ...]:
        """What moved, by where to and where from."""
        groups: dict[tuple[str, str], list[EpisodeRow]] = {}
        for id, was in self._was.items():
            row = self._space.get(id)
            if row is not None and self._now[id] != was:
                groups.setdefault((self._now[id], was), []).append(row)
        emptied = {was for _, was in groups if was and self._is_emptied(was)}
        made = []
        for (scenario, was), rows in sorted(groups.items()):
            begins = not self._space.has_scenario(scenario)
            verb: ScenarioVerb = "create" if begins and not was else "split" if begins else "assign"
            if was and not begins:
                verb = "merge" if was in emptied else "move"
            first = min(rows, key=KEY)
            made.append(
                ScenarioOperation(
                    verb=verb,
                    scenario=scenario,
                    target=was,
                    episodes=tuple(row.id for row in sorted(rows, key=KEY)),
                    reason=_reason(first, links.get(first.id)),
                )
            )
        return tuple(made)

    def _is_emptied(self, scenario: str) -> bool:
        root = self._space.root(scenario)
        stays = bool(root) and self._space.get(root) is not None and self.of(root) == scenario
        return not stays and scenario not in self._claimed


def _reason(row: EpisodeRow, link: Link | None) -> str:
    if not row.parent:
        return "it goes on from nothing earlier"
    words = f", {link.shared} telling words shared" if link is not None else ""
    return f"it goes on from an earlier episode by {row.score:.2f}{words}"
