"""A procedure that worked, as a file in the common format of agent skills: `skills/<name>/SKILL.md`. Pure.

The format: https://agentskills.io/specification (front matter with `name` and `description`, then Markdown).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from lamina.ids import token
from lamina.scenarios.edits import Edits
from lamina.scenarios.render import HOLDS, Section, is_open, mark, said
from lamina.scenarios.tables import AtomRow, ScenarioRow
from lamina.text.markdown import line, one_line

FOLDER = "skills"
FILE = "SKILL.md"
ENOUGH = 2
"""Steps that make a procedure: a single one is a fact."""
MOST_STEPS = 40
MOST_FACTS = 12
NAME_CHARS = 64
DESCRIPTION_CHARS = 500
_COMMAND = re.compile(r"`(?:[\w./~$-]+[ \t]+[^`\n(){};]{1,200}|\./[^`\s]{2,100})`")
"""A program with its arguments, or a script: not the name of a function."""


def path(slug: str) -> str:
    """Where the skill of a scenario is, in the folder of its space."""
    return f"{FOLDER}/{token(slug)}/{FILE}"


def slug_of(path: str) -> str | None:
    """The token of the scenario whose skill has this path."""
    folder, _, rest = path.partition("/")
    name, _, file = rest.partition("/")
    return name if (folder, file) == (FOLDER, FILE) and name else None


def steps(sections: Sequence[Section], edits: Edits) -> list[AtomRow]:
    """What was done that worked (statements that name a command), in the order of time; empty where it is no
    procedure, or did not end well: a task of the situation is still open that was set after the last step."""
    hidden = frozenset(edits.hidden)
    atoms = sorted(
        (atom for one in sections for atom in one.atoms if atom.status in HOLDS and mark(atom.id) not in hidden),
        key=lambda atom: (atom.time_us, atom.n),
    )
    done = [atom for atom in atoms if atom.type == "work_method" and _COMMAND.search(atom.text)]
    if len(done) < ENOUGH or any(is_open(atom) and atom.time_us > done[-1].time_us for atom in atoms):
        return []
    return done[-MOST_STEPS:]


def description(scenario: ScenarioRow, edits: Edits) -> str:
    """When to use it: what a person wrote there, else what the situation is about."""
    return one_line(edits.description[1] or scenario.summary or scenario.title, DESCRIPTION_CHARS)


def document(scenario: ScenarioRow, sections: Sequence[Section], done: Sequence[AtomRow], edits: Edits) -> str:
    """The file: its steps, each with the mark that `lamina why` opens, and what else is known of the situation."""
    hidden = frozenset(edits.hidden)
    front = {"name": scenario.slug[:NAME_CHARS].strip("-"), "description": description(scenario, edits)}
    known = [
        atom
        for one in sections
        for atom in one.atoms
        if atom.status in HOLDS and atom.type in ("work_fact", "work_artifact") and mark(atom.id) not in hidden
    ]
    parts = [
        "---",
        *(f"{key}: {msgspec.json.encode(value).decode()}" for key, value in front.items()),
        "---",
        "",
        f"# {line(scenario.title)}",
        "",
        "## Steps",
        "",
        *(f"{number}. {_words(atom, edits)} [{mark(atom.id)}]" for number, atom in enumerate(done, 1)),
        *(f"- {line(text)}" for _, text in edits.steps),
        "",
    ]
    if known:
        parts += ["## What to know", ""]
        parts += [f"- {_words(atom, edits)} [{mark(atom.id)}]" for atom in known[-MOST_FACTS:]]
        parts += [""]
    parts += [f"From the situation in scenarios/{token(scenario.slug)}.md.", ""]
    return "\n".join(parts).encode("utf-8", "replace").decode()


def _words(atom: AtomRow, edits: Edits) -> str:
    by_hand = edits.said.get(mark(atom.id))
    return line(by_hand[1] if by_hand is not None else said(atom.text, atom.subject))
