"""Which of a model's items become atoms: nothing is believed that code can check, and what falls is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from lamina.atoms.builtin.hygiene import INSTRUCTS, instructs_memory, is_suspicious
from lamina.atoms.model.quotes import Source, is_quoted
from lamina.atoms.model.schema import MAX_ATOMS, MAX_QUOTES, Item
from lamina.atoms.turns import Turn
from lamina.errors import Invalid
from lamina.knowledge import ATOM_TYPES, MAX_ATOM_CHARS, MAX_PRIORITY, Atom, AtomType, Scope, Span
from lamina.text.injected import cut
from lamina.text.language import language
from lamina.text.normalise import normalise
from lamina.text.stopwords import STOP_WORDS
from lamina.text.tokens import terms
from lamina.times import parse

FLOORS: Mapping[str, int] = {"persona": 50, "episodic": 60, "instruction": 70}
WORK_FLOOR = 50
MOST_ENTITIES = 12
MOST_NAME_CHARS = 120
SHARED = 0.25
"""The least part of an atom's telling words that the conversation must have said."""
SUSPICIOUS = "the model found that it instructs the memory itself"
_SLOT = re.compile(r"[a-z][a-z0-9_]*(?:[.:][\w./+#-]+)*\Z")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_QUESTION = re.compile(r"[?\uff1f\u061f][\"'\u201d\u300d)\uff09\s]*\Z")


class _Dropped(Exception):
    """An item is no atom, for this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Checker:
    """Checks the items of one answer against the turns it was about."""

    def __init__(self, window: Sequence[Turn], context: Sequence[Turn]) -> None:
        self._turns = {f"t{n}": turn for n, turn in enumerate(window, 1)}
        self._by_id = {turn.id: turn for turn in window}
        self._before = {f"c{n}" for n in range(1, len(context) + 1)} | {turn.id for turn in context}
        self._sources: dict[str, Source] = {}
        said = [text for turn in (*context, *window) for text in (cut(turn.text), turn.name)]
        self._said = normalise("\n".join(said))
        self._terms = set(terms(self._said))
        self._times = "\n".join(turn.time for turn in (*context, *window))
        self.dropped: Counter[str] = Counter()

    def atoms(self, raw: Sequence[Mapping[str, object]]) -> tuple[Atom, ...]:
        """The atoms of `raw`, in its order, at most `MAX_ATOMS`, those of the highest priority."""
        made: list[Atom] = []
        seen: set[tuple[str, str]] = set()
        for one in raw:
            try:
                atom = self._atom(msgspec.convert(one, Item, strict=False))
            except (msgspec.ValidationError, OverflowError):
                self.dropped["malformed"] += 1
                continue
            except _Dropped as dropped:
                self.dropped[dropped.reason] += 1
                continue
            key = (atom.type, normalise(atom.text))
            if key in seen:
                self.dropped["duplicate"] += 1
                continue
            seen.add(key)
            made.append(atom)
        if len(made) > MAX_ATOMS:
            self.dropped["cap"] += len(made) - MAX_ATOMS
            best = sorted(range(len(made)), key=lambda at: (-made[at].priority, at))[:MAX_ATOMS]
            made = [made[at] for at in sorted(best)]
        return tuple(made)

    def _atom(self, item: Item) -> Atom:
        kind = _kind(item.type)
        text = _line(item.text)
        if not text or len(text) > MAX_ATOM_CHARS:
            raise _Dropped("text")
        if _QUESTION.search(text):
            raise _Dropped("question")
        if not 0 <= item.priority <= MAX_PRIORITY:
            raise _Dropped("priority")
        if item.priority < FLOORS.get(kind, WORK_FLOOR):
            raise _Dropped("below_band")
        spans = self._spans(item)
        _check_speakers(kind, spans, self._by_id)
        tongue = self._language(text, spans)
        self._check_support(text)
        slot, value = self._slot(item)
        valid_from, valid_to = self._validity(item)
        return Atom(
            type=kind,
            text=text,
            sources=spans,
            subject=self._known(item.subject),
            slot=slot,
            value=value,
            entities=self._entities(item.entities),
            priority=item.priority,
            scope=_scope(item, kind),
            polarity=item.polarity if item.polarity in (-1, 0, 1) else 0,
            valid_from=valid_from,
            valid_to=valid_to,
            language=tongue,
            quarantine=self._quarantine(item, spans),
        )

    def _quarantine(self, item: Item, spans: Sequence[Span]) -> str:
        """A model that was talked round does not say so: the rules look at the quoted words, too."""
        if item.suspicious:
            return SUSPICIOUS
        return INSTRUCTS if any(self._instructs(self._by_id[span.id], span) for span in spans) else ""

    @staticmethod
    def _instructs(turn: Turn, span: Span) -> bool:
        said = turn.text[span.start : span.end]
        own = turn.kind == "turn" and turn.role == "user" and not is_quoted(turn.text, span.start, span.end)
        return is_suspicious(turn, said) if own else instructs_memory(said)

    def _spans(self, item: Item) -> tuple[Span, ...]:
        """The spans of the quotes that are found; the reason of the first that is not, where none is."""
        spans: list[Span] = []
        reasons: list[str] = []
        for quote in item.quotes[:MAX_QUOTES]:
            turn = self._turns.get(quote.source) or self._by_id.get(quote.source)
            if turn is None:
                reasons.append("context" if quote.source in self._before else "unknown_source")
                continue
            place = self._sources.setdefault(turn.id, Source(turn.text)).find(quote.quote)
            if place is None or place.recalled:
                reasons.append("quote_not_found" if place is None else "recalled")
                continue
            span = Span(id=turn.id, start=place.start, end=place.end)
            if span not in spans:
                spans.append(span)
        if not spans:
            raise _Dropped(reasons[0] if reasons else "no_quote")
        self.dropped.update(f"part:{reason}" for reason in reasons)
        return tuple(spans)

    def _language(self, text: str, spans: Sequence[Span]) -> str:
        """The language of the atom, which is that of a quote or of the turn it stands in."""
        whole = [self._by_id[span.id].text for span in spans]
        quotes = [text[span.start : span.end] for text, span in zip(whole, spans, strict=True)]
        found = language(text, around=whole[0])
        spoken = {
            language(said, around=around) for said, around in zip((*quotes, *whole), (*whole, *whole), strict=True)
        }
        if found not in spoken:
            raise _Dropped("language")
        return found

    def _check_support(self, text: str) -> None:
        """Numbers were said, or are of a date; and some part of the other words was said too."""
        plain = normalise(text)
        for number in _NUMBER.findall(plain):
            if number not in self._said and not self._of_a_date(plain, number):
                raise _Dropped("number_not_said")
        telling = {term for term in terms(plain) if term not in STOP_WORDS}
        if telling and len(telling & self._terms) < SHARED * len(telling):
            raise _Dropped("not_said")

    def _of_a_date(self, text: str, number: str) -> bool:
        """Is it a part of a date or time that the model worked out from when something was said?"""
        if number in self._times:
            return True
        return any(number in found.group() for found in _DATE.finditer(text))

    def _known(self, name: str) -> str:
        """A name that was said, or means the user; else nothing."""
        name = _line(name)
        if not name or len(name) > MOST_NAME_CHARS:
            return ""
        plain = normalise(name)
        if plain in _USER or plain in self._said:
            return name
        self.dropped["part:subject"] += 1
        return ""

    def _entities(self, names: Sequence[str]) -> tuple[str, ...]:
        wanted = [line for name in names if 0 < len(line := _line(name)) <= MOST_NAME_CHARS]
        kept = [name for name in dict.fromkeys(wanted) if normalise(name) in self._said][:MOST_ENTITIES]
        if len(kept) < len(names):
            self.dropped["part:entity"] += len(names) - len(kept)
        return tuple(kept)

    def _slot(self, item: Item) -> tuple[str, str]:
        """Slot and value, where the slot is one and the value was said; else neither."""
        slot, value = normalise(item.slot.strip()), normalise(_line(item.value))
        if not slot and not value:
            return "", ""
        fits = len(slot) <= MOST_NAME_CHARS and _SLOT.match(slot) and 0 < len(value) <= MOST_NAME_CHARS
        if fits and (value in self._said or value in ("yes", "no")):
            return slot, value
        self.dropped["part:slot"] += 1
        return "", ""

    def _validity(self, item: Item) -> tuple[str, str]:
        start, end = item.valid_from.strip(), item.valid_to.strip()
        if not (_is_time(start) and _is_time(end)) or (start and end and end[:10] < start[:10]):
            self.dropped["part:time"] += 1
            return "", ""
        return start, end


def _kind(type: str) -> AtomType:
    for kind in ATOM_TYPES:
        if kind == type:
            return kind
    raise _Dropped("type")


def _scope(item: Item, kind: AtomType) -> Scope:
    """An instruction that does not say how far it goes does not go far: a rule of one scene is no global rule."""
    if kind != "instruction":
        return ""
    if item.scope == "global":
        return "global"
    return "project" if item.scope == "project" else "scenario"


def _check_speakers(kind: AtomType, spans: Sequence[Span], turns: Mapping[str, Turn]) -> None:
    """Instructions are the user's own words; who somebody is, no tool and no system text tells."""
    for span in spans:
        turn = turns[span.id]
        stated = turn.kind == "stated"
        if kind == "instruction":
            own = stated or (turn.kind == "turn" and turn.role == "user")
            if not own or is_quoted(turn.text, span.start, span.end):
                raise _Dropped("instruction_source")
        elif kind == "persona" and not stated and (turn.kind == "tool" or turn.role not in ("user", "assistant")):
            raise _Dropped("persona_source")


def _is_time(text: str) -> bool:
    if not text:
        return True
    try:
        if _DAY.fullmatch(text):  # fromisoformat alone takes other forms too, and more or less of them by version
            date.fromisoformat(text)
        else:
            parse(text)
    except (ValueError, Invalid):
        return False
    return True


def _line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


_USER = frozenset({"user", "the user", "사용자", "用户", "用戶", "ユーザー", "assistant", "the assistant"})
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    rf"\d{{4}}-\d{{2}}(?:-\d{{2}})?(?:t[\d:.]+)?|(?:{_MONTHS})[a-z]*\.? \d{{1,2}}(?:st|nd|rd|th)?,?(?: \d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{_MONTHS})[a-z]*\.?,?(?: \d{{4}})?|(?:{_MONTHS})[a-z]*\.? \d{{4}}"
    r"|\d{4} ?[年년](?: ?\d{1,2} ?[月월])?(?: ?\d{1,2} ?[日일])?|\d{1,2} ?[月월](?: ?\d{1,2} ?[日일])?|\d{1,2}:\d{2}"
    r"|\b(?:19|20)\d{2}\b"
)
