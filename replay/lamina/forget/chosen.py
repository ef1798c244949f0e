"""Which events a request means. Pure but for the blobs that a text lies in, which it is given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from lamina.errors import Invalid
from lamina.events import Event
from lamina.ids import node_id
from lamina.requests import Forget
from lamina.times import micros

SOURCES = frozenset(
    {
        "turn.recorded",
        "tool.returned",
        "session.ended",
        "memory.stated",
        "memory.corrected",
        "persona.edited",
        "scenario.edited",
    }
)
"""What was said or done. Everything else in the log was made of it, or speaks of it."""
CHOOSABLE = SOURCES | {"context.cut", "recall.asked"}
"""What is meant by itself: it has a session and a time, or the words of whoever asked."""
TOMBSTONE = "memory.forgotten"
MALFORMED = "malformed"
_OWN_IDS = ("turn_id", "call_id")
_WAYS = ("events", "turns", "nodes", "sessions", "between", "matches", "entities", "all")


def check(request: Forget) -> None:
    """`Invalid` unless a request says in exactly one way what is meant."""
    given = [name for name in _WAYS if getattr(request, name)]
    if len(given) != 1:
        ways = "event, turn, node, session, between, match, entity or all"
        raise Invalid(f"say in one way what is to be forgotten: {ways}; there are {len(given)}")
    if request.between and request.between[1] < request.between[0]:
        raise Invalid("the end of the time range lies before its beginning")
    for text in (*request.matches, *request.entities):
        if not plain(text).strip():
            raise Invalid("an empty text is in everything that was said; --all forgets all of it")


class Chooses(Protocol):
    """Whatever says what is to be forgotten: of events (with their blobs, where it `reads_texts`, and their arrival),
    and of messages that are none. `missing` is what was asked for by name, and met nowhere."""

    @property
    def reads_texts(self) -> bool: ...

    def __call__(self, event: Event, blobs: Mapping[str, bytes], at_us: int) -> bool: ...

    def malformed(self, id: str, raw: bytes) -> bool: ...

    def missing(self) -> list[str]: ...


class Chooser:
    """Tells of one event after another whether a request means it. `also` are ids found elsewhere: of what atoms
    that match were made of."""

    def __init__(self, request: Forget, also: frozenset[str] = frozenset()) -> None:
        check(request)
        self._request = request
        self._also = also
        self._between = tuple(micros(one) for one in request.between or ())
        self._patterns = patterns(request)
        self.met: set[str] = set()

    @property
    def reads_texts(self) -> bool:
        """Must it be given the blobs?"""
        return bool(self._patterns)

    def missing(self) -> list[str]:
        """What was asked for by name, and met nowhere."""
        named = (*self._request.events, *self._request.turns, *self._request.nodes, *self._request.sessions)
        return [name for name in named if name not in self.met]

    def __call__(self, event: Event, blobs: Mapping[str, bytes], at_us: int) -> bool:
        """Does the request mean this event, itself and not for what it was made of?"""
        if event.type not in CHOOSABLE:
            return self._request.all or self._named(event.id, self._request.events)
        if self._request.all or event.id in self._also:
            return True
        if self._patterns:
            return any(pattern.search(plain(text)) for text in _texts(event, blobs) for pattern in self._patterns)
        if self._between:
            return self._between[0] <= micros(event.when) <= self._between[1]
        return self._by_name(event)

    def malformed(self, id: str, raw: bytes) -> bool:
        """Does it mean a message that is no event?"""
        if self._request.all or self._named(id, self._request.events):
            return True
        text = plain(raw.decode("utf-8", "replace"))
        return any(pattern.search(text) for pattern in self._patterns)

    def _by_name(self, event: Event) -> bool:
        request = self._request
        found = self._named(event.id, request.events)
        if request.sessions:
            found |= self._named(event.session, request.sessions)
        if request.nodes:
            found |= self._named(node_id(event.id), request.nodes)
        if request.turns:
            data = msgspec.json.decode(event.data)
            found |= any([self._named(str(data.get(key, "")), request.turns) for key in _OWN_IDS])
        return found

    def _named(self, name: str, names: tuple[str, ...]) -> bool:
        if name in names:
            self.met.add(name)
            return True
        return False


def patterns(request: Forget) -> list[re.Pattern[str]]:
    """What of a request is looked for in `plain` texts."""
    found = [re.compile(re.escape(plain(text))) for text in request.matches]
    return found + [_of_words(plain(name)) for name in request.entities]


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            left += one


def _texts(event: Event, blobs: Mapping[str, bytes]) -> Iterator[str]:
    yield from strings(msgspec.json.decode(event.data))
    for data in blobs.values():
        yield data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """A text as texts are compared: composed, whatever the case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _of_words(name: str) -> re.Pattern[str]:
    """A name as a whole word; where its end is no letter that words are spaced by (Han, kana, Hangul), any place:
    particles follow it there without a space."""
    before = r"(?<![0-9a-z_\u00c0-\u024f])" if _spaced(name[0]) else ""
    after = r"(?![0-9a-z_\u00c0-\u024f])" if _spaced(name[-1]) else ""
    return re.compile(before + re.escape(name) + after)


def _spaced(letter: str) -> bool:
    return letter.isalnum() and ord(letter) < 0x1100
