"""A scenario as a person reads it: its title and summary out of its members, and its file. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from lamina.knowledge import COLD_US
from lamina.scenarios.edits import Edits
from lamina.scenarios.grouping import order
from lamina.scenarios.headline import ranks
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


class Digest(Struct, frozen=True, array_like=True):
    """What a scenario is told of an episode without its atoms: how many there are and hold, how often they were said,
    the most central one with its words, and which are open."""

    atoms: int = 0
    facts: int = 0
    mentions: int = 0
    lead: str = ""
    subject: str = ""
    text: str = ""
    open: tuple[str, ...] = ()


class Section(Struct, frozen=True):
    """An episode with its digest, and its atoms where they are shown."""

    episode: EpisodeRow
    digest: Digest
    atoms: tuple[AtomRow, ...] = ()


def digest(atoms: Sequence[AtomRow]) -> Digest:
    """The digest of an episode of these atoms."""
    holding = [atom for atom in atoms if atom.status in HOLDS]
    lead = next(iter(_central(holding or atoms)), None)
    return Digest(
        atoms=len(atoms),
        facts=len(holding),
        mentions=sum(atom.count for atom in holding),
        lead=lead.id if lead is not None else "",
        subject=lead.subject if lead is not None else "",
        text=lead.text if lead is not None else "",
        open=tuple(atom.id for atom in atoms if is_open(atom)),
    )


def mark(id: str) -> str:
    """What stands behind a fact: enough of its id for `lamina why` to find it."""
    return id[:MARK_CHARS]


def _central(atoms: Sequence[AtomRow]) -> list[AtomRow]:
    """The atoms, those first that say best what all are about; of two alike the earlier."""
    by = ranks([(atom.text, atom.subject) for atom in atoms])
    return [atoms[at] for at in sorted(range(len(atoms)), key=lambda at: (-by[at], order(atoms[at])))]


def said(text: str, subject: str) -> str:
    """The words of an atom without who said it."""
    start = f"{subject}: "
    told = text[len(start) :] if subject and text.casefold().startswith(start.casefold()) else text
    return told[:1].upper() + told[1:] if told.split(" ", 1)[0].isalpha() else told


def about(sections: Sequence[Section], edits: Edits) -> tuple[str, str]:
    """Title and summary: of one episode its most central facts, of several those of their leads; as a person said
    them, and without what a person took out."""
    if len(sections) == 1:
        atoms = _shown(sections, edits)[0].atoms
        holding = [atom for atom in atoms if atom.status in HOLDS]
        best = [(order(atom), _told(atom.id, atom.text, atom.subject, edits)) for atom in _central(holding or atoms)]
        facts = best if holding else []
    else:
        hidden = frozenset(edits.hidden)
        leads = [one for one in sections if one.digest.facts] or list(sections)
        leads = [one for one in leads if mark(one.digest.lead) not in hidden] or leads
        by = ranks([(one.digest.text, one.digest.subject) for one in leads])
        by_rank = sorted(range(len(leads)), key=lambda at: (-by[at], at))
        best = [((at, "", ""), _lead(leads[at].digest, edits)) for at in by_rank]
        facts = best if leads[0].digest.facts else []
    title = one_line(best[0][1], TITLE_CHARS) if best else ""
    summary = [_sentence(one_line(text, SUMMARY_CHARS)) for _, text in sorted(facts[:SUMMARY_FACTS])]
    return title, " ".join(summary)


def _lead(digest: Digest, edits: Edits) -> str:
    return _told(digest.lead, digest.text, digest.subject, edits)


def _told(id: str, text: str, subject: str, edits: Edits) -> str:
    by_hand = edits.said.get(mark(id))
    return by_hand[1] if by_hand is not None else said(text, subject)


def slug(title: str, first_us: int) -> str:
    """A name for a file: some words of the title where it has any in ASCII letters, else the day it began."""
    words = [word for word in _SLUG_WORD.findall(title.casefold()) if word not in STOP_WORDS][:SLUG_WORDS]
    name = "-".join(words)[:SLUG_CHARS].strip("-")
    return name if sum(word.isalpha() for word in words) >= 2 else day(first_us)


def fits(slug: str, texts: Iterable[str]) -> bool:
    """Does every word of a file's name still stand in what is left of the scenario?"""
    there = {word for text in texts for word in _SLUG_WORD.findall(text.casefold())}
    return all(word in there or not word.isalpha() for word in slug.split("-")[:-1])


def document(
    scenario: ScenarioRow,
    sections: Sequence[Section],
    parts: Sequence[tuple[str, str, Sequence[Section]]],
    tasks: Sequence[AtomRow],
    edits: Edits,
) -> str:
    """The file of a scenario: its last sections whole; of each month before, in `parts` with its file, one line."""
    shown = _shown(sections, edits)
    hidden = frozenset(edits.hidden)
    moments = [_moment(one, edits) for one in shown if one.atoms]
    return _joined(
        _front(scenario),
        f"# {line(scenario.title)}\n",
        f"{line(scenario.summary)}\n" if scenario.summary else "",
        _list("Notes by hand", [line(text) for _, text in edits.notes]),
        _facts(shown, edits),
        _list("Open questions", [_item(atom, edits, "[ ] ") for atom in tasks if mark(atom.id) not in hidden]),
        _list("Timeline", [*(_month(month, name, held) for month, name, held in parts), *moments]),
        _list("No longer so", _past(shown)),
    )


def part(scenario: ScenarioRow, month: str, sections: Sequence[Section], edits: Edits) -> str:
    """The file of a month of a scenario that has many episodes."""
    shown = _shown(sections, edits)
    fields = {"scenario": scenario.id, "month": month}
    front = "\n".join(["---", *(f"{key}: {_quoted(value)}" for key, value in fields.items()), "---", ""])
    title = f"# {line(scenario.title)} · {month}\n"
    return _joined(front, title, _facts(shown, edits), _list("No longer so", _past(shown)))


def _shown(sections: Sequence[Section], edits: Edits) -> list[Section]:
    hidden = frozenset(edits.hidden)
    return [
        Section(one.episode, one.digest, tuple(atom for atom in one.atoms if mark(atom.id) not in hidden))
        for one in sections
    ]


def _joined(*parts: str) -> str:
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
    lines = [f"{key}: {_quoted(value)}" for key, value in fields.items() if value != ""]
    return "\n".join(["---", *lines, "---", ""])


def _facts(shown: Sequence[Section], edits: Edits) -> str:
    """Every fact that holds, under its episode where there are several."""
    parts = [(one.episode, [atom for atom in one.atoms if atom.status in HOLDS]) for one in shown]
    parts = [(episode, atoms) for episode, atoms in parts if atoms]
    found = []
    for episode, atoms in parts:
        if len(parts) > 1:
            session = line(episode.session, 80)
            found.append(f"### {day(episode.first_us)}{' · ' if session else ''}{session}\n")
        found += [f"- {_item(atom, edits)}" for atom in atoms]
        found.append("")
    return "\n".join(["## Facts\n", *found]) if found else ""


def _list(heading: str, items: Sequence[str]) -> str:
    return "\n".join([f"## {heading}\n", *(f"- {item}" for item in items), ""]) if items else ""


def _item(atom: AtomRow, edits: Edits, box: str = "") -> str:
    return f"{box}{_words(atom, edits)} [{mark(atom.id)}]"


def _words(atom: AtomRow, edits: Edits, most: int | None = None) -> str:
    by_hand = edits.said.get(mark(atom.id))
    doubt = " (contradicted)" if atom.status == "contradicted" else ""
    return line(by_hand[1] if by_hand is not None else atom.text, most) + doubt


def is_open(atom: AtomRow) -> bool:
    """Is it a task or a question that nothing has answered?"""
    return atom.status in HOLDS and (atom.type == "work_task" or atom.text.rstrip().endswith(("?", "？")))


def _moment(one: Section, edits: Edits) -> str:
    lead = next((atom for atom in one.atoms if atom.id == one.digest.lead), one.atoms[0])
    return f"{day(one.episode.first_us)}: {_words(lead, edits, TIMELINE_CHARS)} [{mark(lead.id)}]"


def _month(month: str, name: str, held: Sequence[Section]) -> str:
    facts = sum(one.digest.facts for one in held)
    lead = one_line(said(held[0].digest.text, held[0].digest.subject), TIMELINE_CHARS)
    return f"{month}: {line(lead)} ({facts} facts of {len(held)} episodes in {name}) [{mark(held[0].digest.lead)}]"


def _past(shown: Sequence[Section]) -> list[str]:
    found = []
    for atom in (atom for one in shown for atom in one.atoms if atom.status == "superseded"):
        until = f" until {atom.until[:10]}" if atom.until else ""
        instead = f", then [{mark(atom.by)}]" if atom.by else ""
        found.append(f"{line(atom.text)}{until}{instead} [{mark(atom.id)}]")
    return found


def _quoted(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "。", "！", "？", "…")) else f"{text}."
