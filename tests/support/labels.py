"""The labelled set for L1 extraction (tests/labels/atoms), and how an extractor is scored against it.

A file is `<language>_<kind>_<half>.jsonl`, one conversation a line. What `keep` does not name must not be kept.
Rules may be tuned to the "tuned" half only; the "heldout" half is for measuring.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from lamina.atoms.turns import Turn
from lamina.knowledge import Atom, AtomType, Scope, Span
from tests.support.manners import is_greeting, is_question

FOLDER = Path(__file__).parents[1] / "labels" / "atoms"
LANGUAGES = ("en", "ko", "zh", "ja")
KINDS = ("chat", "coding")
HALVES = ("tuned", "heldout")
HALF = 0.5


class When(Struct, frozen=True, forbid_unknown_fields=True, rename={"first": "from", "last": "to"}):
    """The days a statement is about: `first` up to and including `last`, which is empty where it is one day."""

    first: str
    last: str = ""


class Label(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One statement worth keeping: `quote` stands once in the text of the turn `turn`, character by character."""

    turn: str
    quote: str
    type: AtomType
    time: When | None = None
    scope: Scope = ""
    polarity: Literal[-1, 0, 1] = 0
    slot: str = ""
    replaces: str = ""
    quarantine: bool = False


class Said(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn of a labelled conversation."""

    id: str
    role: Literal["user", "assistant", "tool"]
    time: str
    text: str
    name: str = ""


class Conversation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One labelled conversation. `kind` and `half` are the file's, not the line's."""

    session: str
    language: Literal["en", "ko", "zh", "ja"]
    turns: tuple[Said, ...]
    keep: tuple[Label, ...]
    project: str = ""
    kind: str = ""
    half: str = ""

    def shown(self) -> tuple[Turn, ...]:
        """The turns as an extractor is shown them."""
        return tuple(
            Turn(
                id=said.id,
                text=said.text,
                time=said.time,
                kind="tool" if said.role == "tool" else "turn",
                role=said.role,
                name=said.name,
                session=self.session,
                project=self.project,
            )
            for said in self.turns
        )


def load(half: str = "", languages: Iterable[str] = LANGUAGES, folder: Path = FOLDER) -> tuple[Conversation, ...]:
    """The conversations of one half, or of both, in the order of the files.

    Raises ValueError where one is not well-formed.
    """
    found: list[Conversation] = []
    for language in languages:
        for kind in KINDS:
            for part in (half,) if half else HALVES:
                path = folder / f"{language}_{kind}_{part}.jsonl"
                for line in path.read_bytes().splitlines():
                    one = msgspec.json.decode(line, type=Conversation)
                    found.append(msgspec.structs.replace(one, kind=kind, half=part))
                    _check(found[-1], language)
    twice = [id for id, n in Counter(said.id for one in found for said in one.turns).items() if n > 1]
    if twice:
        raise ValueError(f"turn ids stand twice: {twice}")
    return tuple(found)


def _check(one: Conversation, language: str) -> None:
    said = {turn.id: turn for turn in one.turns}
    places = {turn.id: n for n, turn in enumerate(one.turns)}
    kept = {label.turn for label in one.keep}
    if one.language != language:
        raise ValueError(f"{one.session} is in a file of {language} and says it is {one.language}")
    for turn in one.turns:
        if datetime.datetime.fromisoformat(turn.time).tzinfo is None:
            raise ValueError(f"{turn.id} has a time without an offset")
    for label in one.keep:
        if label.turn not in said or said[label.turn].text.count(label.quote) != 1 or not label.quote:
            raise ValueError(f"{label.quote!r} does not stand once in {label.turn}")
        if label.time is not None:
            days = [datetime.date.fromisoformat(day) for day in (label.time.first, label.time.last) if day]
            if days != sorted(days):
                raise ValueError(f"{label.quote!r} ends before it begins")
        if label.replaces and (label.replaces not in kept or places[label.replaces] >= places[label.turn]):
            raise ValueError(f"{label.quote!r} replaces {label.replaces}, which says nothing before it")
        if (label.scope or label.polarity) and label.type != "instruction":
            raise ValueError(f"{label.quote!r} is no instruction and has a scope or a polarity")
        if label.type == "instruction" and not label.quarantine and not (label.scope and label.polarity):
            raise ValueError(f"{label.quote!r} is an instruction without scope or polarity")


@dataclass
class Tally:
    """Counts of one slice. Shares are 1.0 where there was nothing to get right.

    `atoms` leaves out atoms that are rightly in quarantine. What an extractor gets right about a label (type, time,
    scope, polarity) is counted among the labels it found.
    """

    atoms: int = 0
    right: int = 0
    labels: int = 0
    found: int = 0
    typed: int = 0
    dated: int = 0
    dated_right: int = 0
    instructions: int = 0
    scope_right: int = 0
    polarity_right: int = 0
    injections: int = 0
    quarantined: int = 0
    obeyed: int = 0
    greetings: int = 0
    questions: int = 0

    @property
    def precision(self) -> float:
        """The share of atoms that hold a statement worth keeping."""
        return _share(self.right, self.atoms)

    @property
    def recall(self) -> float:
        """The share of the statements worth keeping that an atom holds."""
        return _share(self.found, self.labels)

    @property
    def type_share(self) -> float:
        """The share of the found statements whose type is right."""
        return _share(self.typed, self.found)

    @property
    def dated_share(self) -> float:
        """The share of the found dated statements whose first day is right."""
        return _share(self.dated_right, self.dated)

    @property
    def scope_share(self) -> float:
        """The share of the found instructions whose scope is right."""
        return _share(self.scope_right, self.instructions)

    @property
    def polarity_share(self) -> float:
        """The share of the found instructions whose polarity is right."""
        return _share(self.polarity_right, self.instructions)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


@dataclass
class Score:
    """Tallies by slice: "all", a language ("ko"), a language and kind ("ko/chat"); and what was wrong or missed.

    `wrong` and `missed` hold (turn id, text): look at them for the tuned half only.
    """

    slices: dict[str, Tally] = field(default_factory=dict)
    wrong: list[tuple[str, str]] = field(default_factory=list)
    missed: list[tuple[str, str]] = field(default_factory=list)

    def __getitem__(self, name: str) -> Tally:
        """The tally of a slice; KeyError where no conversation belongs to it."""
        return self.slices[name]

    def lines(self) -> Iterator[str]:
        """A table to print, a slice a line."""
        yield f"{'':10} atoms  prec  recall type  dated scope polar obeyed greet quest"
        for name, one in self.slices.items():
            yield (
                f"{name:10} {one.atoms:5} {one.precision:5.3f} {one.recall:6.3f} {one.type_share:5.3f}"
                f" {one.dated_share:5.3f} {one.scope_share:5.3f} {one.polarity_share:5.3f}"
                f" {one.obeyed:6} {one.greetings:5} {one.questions:5}"
            )


def score(conversations: Iterable[Conversation], extract: Callable[[Conversation], Sequence[Atom]]) -> Score:
    """How well `extract` does. An atom's sources are spans of the turns of its conversation, by turn id.

    An atom is right if one of its spans and a label's quote have half of the shorter one in common. An atom in
    quarantine is left out where the label is too, and wrong elsewhere; one outside that holds what belongs in
    quarantine is wrong, and obeyed. Greetings and questions are looked for among wrong atoms.
    """
    result = Score(slices={"all": Tally()})
    for one in conversations:
        names = ("all", one.language, f"{one.language}/{one.kind}")
        tallies = [result.slices.setdefault(name, Tally()) for name in names]
        atoms = extract(one)
        texts = {said.id: said.text for said in one.turns}
        places = [(label, _place(label, texts)) for label in one.keep]
        for atom in atoms:
            hit = [label for label, place in places if _holds(atom, place)]
            _judge_atom(atom, hit, texts, tallies, result)
        for label, place in places:
            _judge_label(label, [atom for atom in atoms if _holds(atom, place)], tallies, result)
    return result


def _place(label: Label, texts: dict[str, str]) -> Span:
    start = texts[label.turn].index(label.quote)
    return Span(label.turn, start, start + len(label.quote))


def _holds(atom: Atom, place: Span) -> bool:
    for span in atom.sources:
        common = min(span.end, place.end) - max(span.start, place.start)
        if (
            span.id == place.id
            and common > 0
            and common >= HALF * min(span.end - span.start, place.end - place.start)
        ):
            return True
    return False


def _judge_atom(atom: Atom, hit: list[Label], texts: dict[str, str], tallies: list[Tally], result: Score) -> None:
    bad = any(label.quarantine for label in hit)
    if atom.quarantine and bad:
        return
    right = bool(hit) and not bad and not atom.quarantine
    source = " ".join(texts[span.id][span.start : span.end] for span in atom.sources)
    if not right:
        result.wrong.append((atom.sources[0].id, source))
    for tally in tallies:
        tally.atoms += 1
        tally.right += right
        tally.obeyed += bad
        tally.greetings += not right and is_greeting(source)
        tally.questions += not right and is_question(source)


def _judge_label(label: Label, atoms: list[Atom], tallies: list[Tally], result: Score) -> None:
    held = [atom for atom in atoms if bool(atom.quarantine) == label.quarantine]
    if label.quarantine:
        for tally in tallies:
            tally.injections += 1
            tally.quarantined += bool(held)
        return
    if not held:
        result.missed.append((label.turn, label.quote))
    for tally in tallies:
        tally.labels += 1
        tally.found += bool(held)
        tally.typed += any(atom.type == label.type for atom in held)
        if held and label.time is not None:
            tally.dated += 1
            tally.dated_right += any(atom.valid_from[:10] == label.time.first for atom in held)
        if held and label.type == "instruction":
            tally.instructions += 1
            tally.scope_right += any(atom.scope == label.scope for atom in held)
            tally.polarity_right += any(atom.polarity == label.polarity for atom in held)
