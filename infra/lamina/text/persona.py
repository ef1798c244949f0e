"""`persona.md`: the lines that are shown, by section, each with the mark of its source. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from lamina.knowledge import Section
from lamina.text.lines import MOST_WRITTEN_CHARS, escaped, item, plain, said

FILE: Final = "persona.md"
TITLE = "# Persona"
NOTE = (
    "<!-- Made of what was said, a line each. Change, add or take out lines: your words win over what is inferred. "
    "`lamina why` opens the mark at the end of a line. -->"
)
NOTHING = "_Nothing is known yet._"
HEADINGS: dict[Section, str] = {
    "standing": "Standing instructions",
    "project": "Standing instructions of projects",
    "identity": "Identity and context",
    "preferences": "Preferences",
    "ways": "Ways of working",
    "people": "People and things",
    "tensions": "Tensions",
}
_PROJECT = "In the project "


class Shown(Struct, frozen=True, kw_only=True):
    """A line as it is shown: plain text, and where it stands."""

    id: str
    section: str
    text: str
    project: str = ""


def line_text(written: str, said_first: tuple[str, str] | None, said_against: tuple[str, str] | None) -> str:
    """What a line says: what a person or a model wrote, else the words of its atom (text, subject) and of the one
    that speaks against it; empty where nothing is left of what it came from."""
    if written:
        return plain(written, MOST_WRITTEN_CHARS)
    if said_first is None:
        return ""
    text = said(*said_first)
    return f"{text} — but: {said(*said_against)}" if said_against is not None else text


def body(
    shown: Sequence[tuple[str, str]],
    find: Callable[[str], Shown | None],
    *,
    over: int,
    standing_chars: int,
    note: bool = True,
) -> str:
    """The file without its seal, and without its word to the reader where `note` is false. A line that is not to be
    found any more is left out."""
    lines = [replace for section, id in shown if (replace := _placed(find(id), section)) is not None]
    parts = [TITLE, "", NOTE] if note else [TITLE]
    for section, heading in HEADINGS.items():
        own = [line for line in lines if line.section == section]
        if not own and not (section == "standing" and over):
            continue
        parts += ["", f"## {heading}"]
        project: str | None = None
        for line in own:
            if section == "project" and line.project != project:
                project = line.project
                parts += ["", f"### {_PROJECT}{escaped(plain(project, 120)) or 'of no name'}"]
            if parts[-1].startswith("#"):
                parts.append("")
            parts.append(item(line.text, line.id))
        if section == "standing" and over:
            parts += ["", overflow(over, standing_chars)]
    if not lines and not over:
        parts += ["", NOTHING]
    return "\n".join(parts) + "\n"


def listed(text: str) -> list[str]:
    """The lines of a file that say something, with their marks; of those of a project the name before them."""
    found, project = [], ""
    for line in text.splitlines():
        if line.startswith("#"):
            project = f"{line[4:]}: " if line.startswith(f"### {_PROJECT}") else ""
        elif line.startswith("- "):
            found.append(project + line[2:])
    return found


def overflow(over: int, chars: int) -> str:
    """The word about standing instructions that have no room: none is left out without it."""
    are = "1 more standing instruction does" if over == 1 else f"{over} more standing instructions do"
    return f"_{are} not fit into {chars:,} characters: see `lamina show persona --all`._"


def section_under(heading: str) -> tuple[str, str] | None:
    """The section, and the project, of a line that a person wrote under this heading of the file; None where it is
    none of ours."""
    text = heading.lstrip("#").strip()
    if text.startswith(_PROJECT):
        return "project", text[len(_PROJECT) :].replace("\\", "")
    for section, name in HEADINGS.items():
        if text.casefold() == name.casefold() and section not in ("project", "tensions"):
            return section, ""
    return None


def _placed(line: Shown | None, section: str) -> Shown | None:
    if line is None or line.section == section:
        return line
    return Shown(id=line.id, section=section, text=line.text, project=line.project)
