"""A scenario as a person reads it: its title and summary out of its members, and its file. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina.knowledge import COLD_US
from lamina.scenarios.edits import Edits
from lamina.scenarios.grouping import order, telling
from lamina.scenarios.tables import AtomRow, EpisodeRow, ScenarioRow
from lamina.text import STOP_WORDS
from lamina.text.markdown import line, one_line
from lamina.times import from_micros, text_of

HOLDS = ("active", "contradicted")
TITLE_CHARS = 60
SUMMARY_FACTS = 3
SUMMARY_CHARS = 160
TIMELINE_CHARS = 100
SLUG_WORDS = 5
SLUG_CHARS = 48
MARK_CHARS = 8
_SLUG_WORD = re.compile(r"[a-z0-9]+")


class Members(Struct, frozen=True):
    """What a scenario is made of: its episodes and their atoms, in the order of time."""

    episodes: tuple[tuple[EpisodeRow, tuple[AtomRow, ...]], ...]

    @property
    def atoms(self) -> list[AtomRow]:
        return sorted((atom for _, atoms in self.episodes for atom in atoms), key=order)

    @property
    def holding(self) -> list[AtomRow]:
        return [atom for atom in self.atoms if atom.status in HOLDS]


def mark(id: str) -> str:
    """What stands behind a fact: enough of its id for `lamina why` to find it."""
    return id[:MARK_CHARS]


def central(atoms: Sequence[AtomRow]) -> list[AtomRow]:
    """The atoms, those first whose words most of the others have too; of two alike the earlier."""
    words = {atom.id: telling(atom.text, atom.subject) for atom in atoms}
    often = Counter(word for held in words.values() for word in held)

    def worth(atom: AtomRow) -> float:
        held = words[atom.id]
        return round(sum(often[word] - 1 for word in held) / math.sqrt(len(held) or 1), 6)

    return sorted(atoms, key=lambda atom: (-worth(atom), order(atom)))


def said(atom: AtomRow) -> str:
    """The words of an atom without who said it."""
    start = f"{atom.subject}: "
    told = (
        atom.text[len(start) :] if atom.subject and atom.text.casefold().startswith(start.casefold()) else atom.text
    )
    return told[:1].upper() + told[1:] if told.split(" ", 1)[0].isalpha() else told


def title(members: Members) -> str:
    """The words of the most central fact that holds."""
    first = central(members.holding or members.atoms)[:1]
    return one_line(said(first[0]), TITLE_CHARS) if first else ""


def summary(members: Members) -> str:
    """The most central facts that hold, in the order of time."""
    facts = sorted(central(members.holding)[:SUMMARY_FACTS], key=order)
    return " ".join(_sentence(one_line(said(atom), SUMMARY_CHARS)) for atom in facts)


def slug(title: str, first_us: int) -> str:
    """A name for a file: some words of the title where it has any in ASCII letters, else the day it began."""
    words = [word for word in _SLUG_WORD.findall(title.casefold()) if word not in STOP_WORDS][:SLUG_WORDS]
    name = "-".join(words)[:SLUG_CHARS].strip("-")
    return name if sum(word.isalpha() for word in words) >= 2 else day(first_us)


def fits(slug: str, members: Members, title: str) -> bool:
    """Does every word of a file's name still stand in what is left of the scenario?"""
    texts = [title, *(atom.text for atom in members.atoms)]
    there = {word for text in texts for word in _SLUG_WORD.findall(text.casefold())}
    return all(word in there or not word.isalpha() for word in slug.split("-")[:-1])


def document(scenario: ScenarioRow, members: Members, edits: Edits) -> str:
    """The file of a scenario."""
    hidden = frozenset(edits.hidden)
    shown = [
        (episode, [atom for atom in atoms if mark(atom.id) not in hidden]) for episode, atoms in members.episodes
    ]
    every = [atom for _, atoms in shown for atom in atoms]
    parts = [
        _front(scenario),
        f"# {line(scenario.title)}\n",
        f"{line(scenario.summary)}\n" if scenario.summary else "",
        _notes(edits),
        _facts(shown, edits),
        _list("Open questions", [_item(atom, edits, "[ ] ") for atom in every if _open(atom)]),
        _list("Timeline", [_moment(episode, atoms, edits) for episode, atoms in shown if atoms]),
        _list("No longer so", [_past(atom) for atom in every if atom.status == "superseded"]),
    ]
    return "\n".join(part for part in parts if part).encode("utf-8", "replace").decode()


def day(time_us: int) -> str:
    return text_of(from_micros(time_us))[:10]


def _front(one: ScenarioRow) -> str:
    last = one.last_us
    fields = {
        "id": one.id,
        "title": one.title,
        "status": one.status,
        "project": one.project,
        "first": text_of(from_micros(one.first_us)),
        "last": text_of(from_micros(last)),
        "dormant_after": text_of(from_micros(last + COLD_US)),
        "facts": one.atoms,
        "mentions": one.mentions,
        "sessions": one.sessions,
    }
    lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in fields.items() if value != ""]
    return "\n".join(["---", *lines, "---", ""])


def _facts(shown: Sequence[tuple[EpisodeRow, Sequence[AtomRow]]], edits: Edits) -> str:
    """Every fact that holds, under its episode where there are several."""
    parts = [(episode, [atom for atom in atoms if atom.status in HOLDS]) for episode, atoms in shown]
    parts = [(episode, atoms) for episode, atoms in parts if atoms]
    found = []
    for episode, atoms in parts:
        if len(parts) > 1:
            session = line(episode.session, 80)
            found.append(f"### {day(episode.first_us)}{' · ' if session else ''}{session}\n")
        found += [f"- {_item(atom, edits)}" for atom in atoms]
        found.append("")
    return "\n".join(["## Facts\n", *found]) if found else ""


def _notes(edits: Edits) -> str:
    return _list("Notes by hand", [line(text) for _, text in edits.notes])


def _list(heading: str, items: Sequence[str]) -> str:
    return "\n".join([f"## {heading}\n", *(f"- {item}" for item in items), ""]) if items else ""


def _item(atom: AtomRow, edits: Edits, box: str = "") -> str:
    return f"{box}{_words(atom, edits)} [{mark(atom.id)}]"


def _words(atom: AtomRow, edits: Edits, most: int | None = None) -> str:
    by_hand = edits.said.get(mark(atom.id))
    doubt = " (contradicted)" if atom.status == "contradicted" else ""
    return line(by_hand[1] if by_hand is not None else atom.text, most) + doubt


def _open(atom: AtomRow) -> bool:
    return atom.status in HOLDS and (atom.type == "work_task" or atom.text.rstrip().endswith(("?", "？")))


def _moment(episode: EpisodeRow, atoms: Sequence[AtomRow], edits: Edits) -> str:
    first = central([atom for atom in atoms if atom.status in HOLDS] or atoms)[0]
    return f"{day(episode.first_us)}: {_words(first, edits, TIMELINE_CHARS)} [{mark(first.id)}]"


def _past(atom: AtomRow) -> str:
    until = f" until {atom.until[:10]}" if atom.until else ""
    instead = f", then [{mark(atom.by)}]" if atom.by else ""
    return f"{line(atom.text)}{until}{instead} [{mark(atom.id)}]"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "。", "！", "？", "…")) else f"{text}."
