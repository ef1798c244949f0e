"""The pieces of erased texts that the proof looks for: held in memory for the length of a command, never written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lamina.events import Event
from lamina.forget.chosen import CHOOSABLE, strings

LEAST_BYTES, MOST_BYTES = 12, 40
OF_A_TEXT = 4
"""So many pieces of each text, spread over it."""
MOST = 200_000
_SAID = ("text", "arguments", "result", "removed", "added", "query")
_BLOB = {"sha256", "size_bytes", "media_type", "name"}
_PREFIX = 8
_PLAIN = re.compile(r'[^\x00-\x1f"\\\x7f]+')
"""What stands in JSON as it stands in a text."""


class Pieces:
    """Some byte strings, all of which are looked for at once."""

    def __init__(self) -> None:
        self._of: dict[bytes, list[bytes]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, texts: Iterable[str]) -> None:
        """Take some pieces of each text; of a short one there is none that would tell it from another."""
        for text in texts:
            for piece in _pieces(text):
                self._put(piece)

    def merge(self, other: Pieces) -> None:
        """Look for those of another one, too."""
        for known in other._of.values():
            for piece in known:
                self._put(piece)

    def take(self, event: Event, blobs: Mapping[str, bytes]) -> None:
        """Pieces of everything that somebody said in an event. What was derived is not looked for in its own words:
        of sources that stay the same may be derived again."""
        if event.type not in CHOOSABLE:
            return
        data = msgspec.json.decode(event.data)
        self.add(
            text for key, value in data.items() if key in _SAID and not _is_blob(value) for text in strings(value)
        )
        self.add(data.decode("utf-8", "replace") for data in blobs.values())

    def drop(self, data: bytes) -> None:
        """Look no more for what stands in `data`: it is also said by somebody who stays."""
        for piece in list(self.within(data)):
            known = self._of[piece[:_PREFIX]]
            known.remove(piece)
            self._count -= 1
            if not known:
                del self._of[piece[:_PREFIX]]

    def drop_all(self, datas: Iterable[bytes]) -> None:
        for data in datas:
            self.drop(data)

    def within(self, data: bytes) -> Iterator[bytes]:
        """Those that stand in `data`, each once."""
        if not self._of or len(data) < LEAST_BYTES:
            return
        seen: set[bytes] = set()
        for start in self._starts(data):
            for piece in self._of[data[start : start + _PREFIX]]:
                if piece not in seen and data.startswith(piece, start):
                    seen.add(piece)
                    yield piece

    def _put(self, piece: bytes) -> None:
        known = self._of.get(piece[:_PREFIX], [])
        if piece not in known and self._count < MOST:
            self._of[piece[:_PREFIX]] = [*known, piece]
            self._count += 1

    def _starts(self, data: bytes) -> list[int]:
        """Where the first bytes of a piece stand."""
        import numpy as np

        wanted = np.sort(np.frombuffer(b"".join(self._of), dtype="<u8"))
        found: list[int] = []
        for shift in range(_PREFIX):
            words = np.frombuffer(data, dtype="<u8", offset=shift, count=(len(data) - shift) // _PREFIX)
            place = np.searchsorted(wanted, words)
            place[place == len(wanted)] = 0
            found += (np.flatnonzero(wanted[place] == words) * _PREFIX + shift).tolist()
        return found


def _is_blob(value: object) -> bool:
    return isinstance(value, dict) and "sha256" in value and set(value) <= _BLOB


def _pieces(text: str) -> Iterator[bytes]:
    """Up to `OF_A_TEXT` pieces of a text, from its longest stretches that JSON does not write otherwise."""
    runs = sorted((found.group() for found in _PLAIN.finditer(text)), key=len, reverse=True)[:OF_A_TEXT]
    each = max(1, OF_A_TEXT // max(1, len(runs)))
    for run in runs:
        raw = run.strip().encode("utf-8", "ignore")
        if len(raw) < LEAST_BYTES:
            continue
        step = max(MOST_BYTES, len(raw) // each)
        for start in range(0, min(len(raw), each * step), step):
            piece = raw[start : start + MOST_BYTES]
            if len(piece) >= LEAST_BYTES:
                yield piece
