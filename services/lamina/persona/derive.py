"""What becomes of lines by decisions, a person's edits, and what is forgotten. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lamina.events import Event, MemoryForgotten, PersonaEdited, PersonaRevised
from lamina.ids import line_id
from lamina.knowledge import LineChange
from lamina.persona.tables import (
    GONE,
    HIDDEN,
    INFERRED,
    REMOVED,
    WRITTEN,
    AtomRow,
    EditRow,
    LineRow,
    got,
    json,
    put,
    strings,
)
from lamina.persona.work import Work
from lamina.runtime import Drop, Recorded
from lamina.text.lines import mark_of, written
from lamina.text.persona import FILE, section_under

MOST_WRITTEN = 200
"""So many lines one edit may put in; of a longer one the rest is no persona."""


def revised(work: Work, event: str, data: PersonaRevised) -> None:
    """A decision: lines as it says, but for those that a person wrote or took out."""
    work.looked(data.inputs)
    for one in data.operations:
        _change(work, event, one)
    work.show(_with_written(work, data.shown), data.over)


def _change(work: Work, event: str, one: LineChange) -> None:
    if one.kind == "drop":
        _dropped(work, one.atom)
        return
    if one.target and one.target != one.atom:
        _dropped(work, one.target)
    atom = work.atom(one.atom)
    if atom is None:
        return  # forgotten since it was decided
    work.put_line(changed(work.line(atom.line) or LineRow(id=atom.line), one, decision=event))


def changed(line: LineRow, one: LineChange, *, decision: str) -> LineRow:
    """The line after the change. What a person took out stays out; an instruction alone may come back, when it is
    given again."""
    again = line.held == GONE or (
        line.held == REMOVED and one.section in ("standing", "project") and one.last_us > line.edit_us
    )
    return replace(
        line,
        atom=one.atom,
        section=one.section,
        weight=one.weight,
        first_us=one.first_us,
        last_us=one.last_us,
        until=one.until,
        other=one.other,
        project=one.project,
        text=one.text,
        held=INFERRED if again else line.held,
        decision=decision,
    )


def _dropped(work: Work, atom: str) -> None:
    """The line of an atom goes, unless it is another atom's by now; what a person took out is remembered."""
    row = work.atom(atom)
    line = work.line(row.line) if row is not None else None
    if line is not None and line.atom == atom and line.held == INFERRED:
        work.put_line(replace(line, held=GONE))


def _with_written(work: Work, shown: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The lines of a decision, and any that a person wrote while it was being made."""
    there = {id for _, id in shown}
    missing = [place for place in work.state.shown if place[1] not in there and _is_written(work, place[1])]
    return [*missing, *shown]


def _is_written(work: Work, id: str) -> bool:
    line = work.line(id)
    return line is not None and line.held == WRITTEN


def edited(work: Work, event: Event, recorded: Recorded, data: PersonaEdited, time_us: int) -> None:
    """Lines that a person took out stay out; those that they wrote stand until they take them out."""
    if data.path != FILE or got(work.rows, EditRow, event.id) is not None:
        return
    gone = [line for one in data.removed if (line := _meant(work, one)) is not None]
    added = [_written(work, event.id, n, text, under, time_us) for n, text, under in _lines(work, data)]
    for line in gone:
        if line.held == WRITTEN:
            work.put_line(replace(line, held=GONE))
        else:
            work.put_line(replace(line, held=REMOVED, edit=event.id, edit_us=time_us))
    for one in added:
        work.put_line(one)
    work.others.append(
        put(
            EditRow(
                id=event.id,
                seq=recorded.seq,
                at_us=recorded.at_us,
                made=json([one.id for one in added]),
                removed=json([line.id for line in gone]),
            )
        )
    )
    work.state = replace(work.state, edits=work.state.edits + 1)
    work.show([*_in_place(work, added), *((one.section, one.id) for one in added)])
    work.wait()


def _meant(work: Work, text: str) -> LineRow | None:
    """The line with the mark that ends the text; without one, or where another stands in its place since, what a
    person wrote in these words."""
    marked = work.line(mark_of(text))
    if marked is not None and marked.held not in HIDDEN:
        return marked
    lines = [line for _, id in work.state.shown if (line := work.line(id)) is not None and line.held == WRITTEN]
    return next((line for line in lines if line.text == written(text)), marked)


def _lines(work: Work, data: PersonaEdited) -> list[tuple[int, str, str]]:
    """What was put in, with the heading above it. A mark that leads nowhere ends a line that was forgotten."""
    under = (*data.under, *[""] * len(data.added))
    lines = [(n, one, under[n]) for n, one in enumerate(data.added) if written(one)]
    return [one for one in lines if not mark_of(one[1]) or work.line(mark_of(one[1])) is not None][:MOST_WRITTEN]


def _written(work: Work, event: str, n: int, text: str, under: str, time_us: int) -> LineRow:
    """A line of a person's own. With the mark of another line it stands in its place, and in its section where no
    heading says otherwise."""
    old = work.line(mark_of(text))
    place = section_under(under)
    if place is None:
        place = (old.section, old.project) if old is not None else ("identity", "")
    section, project = place
    return LineRow(
        id=line_id(f"{event}\x1f{n}"),
        section=section,
        project=project,
        weight=100,
        first_us=old.first_us if old is not None else time_us,
        last_us=time_us,
        held=WRITTEN,
        text=written(text),
        edit=event,
        edit_us=time_us,
        replaces=(old.replaces or old.id if old.held == WRITTEN else old.id) if old is not None else "",
    )


def _in_place(work: Work, added: Sequence[LineRow]) -> list[tuple[str, str]]:
    """What is shown, with what a person wrote in the place of another line where that one stood."""
    places: dict[str, LineRow] = {one.replaces: one for one in added if one.replaces}
    return [
        (places[id].section, places[id].id) if id in places else (section, id) for section, id in work.state.shown
    ]


def forgotten(work: Work, data: MemoryForgotten) -> None:
    """What came of these ids alone is gone: atoms, lines, and what a person wrote under one of them."""
    for id in data.ids:
        work.looked((id,))
        own = work.atom(id)
        for one in [own] if own is not None else list(map(work.atom, work.came_of(id))):
            if one is not None:
                _lose(work, one, id)
                work.origin(id, one.id, gone=True)
        edit = got(work.rows, EditRow, id)
        if edit is not None:
            _unedit(work, edit)
    work.show(work.state.shown)


def _lose(work: Work, atom: AtomRow, origin: str) -> None:
    """An atom without one of its sources; with none left, or forgotten itself, it is no more, and nor is its line."""
    sources = [one for one in strings(atom.sources) if one != origin]
    whole = origin == atom.id or origin not in strings(atom.sources)
    if sources and not whole:
        work.put_atom(replace(atom, sources=json(sources)))
        return
    line = work.line(atom.line)
    if line is not None and line.atom == atom.id:
        work.drop_line(line)
    work.drop_atom(atom)
    for other in strings(atom.origins):
        work.origin(other, atom.id, gone=True)


def _unedit(work: Work, edit: EditRow) -> None:
    for id in strings(edit.made):
        line = work.line(id)
        if line is not None:
            work.drop_line(line)
    for id in strings(edit.removed):
        line = work.line(id)
        if line is not None and line.edit == edit.id:
            work.put_line(replace(line, held=INFERRED, edit="", edit_us=0))
    work.others.append(Drop("edits", (edit.id,)))
