"""The working set of one event: the atoms and lines it touches, and the persona after it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from lamina.persona.select import STANDING_CHARS
from lamina.persona.tables import (
    HIDDEN,
    AtomRow,
    LineRow,
    RevisionRow,
    got,
    json,
    put,
    strings,
)
from lamina.runtime import Change, Drop, Put, Rows, WriteFile
from lamina.runtime.sealing import seal_of, sealed
from lamina.text.persona import FILE, Shown, body, line_text


class State(Struct, frozen=True):
    """What a space's persona comes to: what is shown of it, and what waits for a revision.

    `pending` events wait since `pending_us`; `unreconciled` are extractions whose reconciliation is still to come.
    """

    pending: int = 0
    pending_us: int = 0
    unreconciled: tuple[str, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()
    over: int = 0
    seal: str = ""
    revisions: int = 0
    edits: int = 0


def text_of(line: LineRow, atom: Callable[[str], AtomRow | None]) -> str:
    """What a line says, on one line; empty where nothing is left of what it came from."""
    own, other = atom(line.atom), atom(line.other) if line.other else None
    return line_text(line.text, _said(own), _said(other))


def _said(atom: AtomRow | None) -> tuple[str, str] | None:
    return (atom.text, atom.subject) if atom is not None else None


class Work:
    """Reads rows once, shows its own changes, gives them back in the end. `state` is the space's after them."""

    def __init__(self, state: State, rows: Rows, *, seq: int, at_us: int, event: str, kind: str) -> None:
        self.state = state
        self.rows = rows
        self.others: list[Change] = []
        self._seq, self._at_us, self._event, self._kind = seq, at_us, event, kind
        self._lines: dict[str, LineRow | None] = {}
        self._atoms: dict[str, AtomRow | None] = {}
        self._origins: dict[str, tuple[str, ...]] = {}
        self._render = False

    def atom(self, id: str) -> AtomRow | None:
        if id not in self._atoms:
            self._atoms[id] = got(self.rows, AtomRow, id)
        return self._atoms[id]

    def put_atom(self, atom: AtomRow) -> None:
        self._atoms[atom.id] = atom
        self.others.append(put(atom))

    def drop_atom(self, atom: AtomRow) -> None:
        self._atoms[atom.id] = None
        self.others.append(Drop("atoms", (atom.id,)))

    def line(self, id: str) -> LineRow | None:
        if id not in self._lines:
            self._lines[id] = got(self.rows, LineRow, id)
        return self._lines[id]

    def put_line(self, line: LineRow) -> None:
        self._lines[line.id] = line
        self.others.append(put(line))
        self._render = True

    def drop_line(self, line: LineRow) -> None:
        self._lines[line.id] = None
        self.others.append(Drop("lines", (line.id,)))
        self._render = True

    def show(self, shown: Iterable[tuple[str, str]], over: int | None = None) -> None:
        """Show these lines, of which any that is gone or taken out by a person is left out."""
        kept = tuple((section, id) for section, id in dict.fromkeys(shown) if self._stands(id))
        self.state = replace(self.state, shown=kept, over=self.state.over if over is None else over)
        self._render = True

    def wait(self, atoms: Iterable[str] = (), *, whole: bool = False) -> None:
        """Let the persona be looked at again, because of this event."""
        if self.rows.get("pending", (self._event,)) is not None:
            return
        since = self.state.pending_us if self.state.pending else self._at_us
        self.state = replace(self.state, pending=self.state.pending + 1, pending_us=since)
        self.others.append(Put("pending", (self._event, self._seq, json(tuple(dict.fromkeys(atoms))), int(whole))))

    def looked(self, events: Iterable[str]) -> None:
        """These events wait no more."""
        for id in dict.fromkeys(events):
            if self.rows.get("pending", (id,)) is not None:
                self.others.append(Drop("pending", (id,)))
                self.state = replace(self.state, pending=self.state.pending - 1)

    def origin(self, id: str, atom: str, *, gone: bool = False) -> None:
        """Note that an atom came of the event `id`, or that it is no more."""
        atoms = [one for one in self.came_of(id) if one != atom]
        if not gone:
            atoms.append(atom)
        self._origins[id] = tuple(atoms)
        self.others.append(Put("origins", (id, json(atoms))) if atoms else Drop("origins", (id,)))

    def came_of(self, id: str) -> tuple[str, ...]:
        """The atoms that came of the event `id`."""
        if id not in self._origins:
            row = self.rows.get("origins", (id,))
            self._origins[id] = strings(row[1]) if row is not None else ()
        return self._origins[id]

    def shown(self, id: str) -> Shown | None:
        """A line as it stands in the file."""
        line = self.line(id)
        if line is None or line.held in HIDDEN:
            return None
        text = text_of(line, self.atom)
        return Shown(id=id, section=line.section, text=text, project=line.project) if text else None

    def changes(self) -> list[Change]:
        return [*self.others, *self._revised()]

    def _stands(self, id: str) -> bool:
        line = self.line(id)
        return line is not None and line.held not in HIDDEN

    def _revised(self) -> list[Change]:
        """The file, and a revision of its own, where it says something else than before."""
        if not self._render:
            return []
        text = body(self.state.shown, self.shown, over=self.state.over, standing_chars=STANDING_CHARS)
        data = sealed(text)
        if seal_of(data) == self.state.seal:
            return []
        self.state = replace(self.state, seal=seal_of(data), revisions=self.state.revisions + 1)
        row = RevisionRow(
            n=self.state.revisions,
            seq=self._seq,
            at_us=self._at_us,
            event=self._event,
            kind=self._kind,
            shown=json(self.state.shown),
            over=self.state.over,
            seal=self.state.seal,
        )
        return [put(row), WriteFile(FILE, data)]
