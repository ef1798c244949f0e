"""What an embed loop says of itself: `run/embedding/<service>-<pid>.json`, written when it changes."""

from __future__ import annotations

import contextlib
import os
import time
from typing import BinaryIO

import msgspec
from msgspec import Struct

from lamina.home import Home, alive
from lamina.store.files import translated_os

EVERY_S = 1.0
STATE_BYTES = 2_048
MOST_WHY_CHARS = 500


class EmbedState(Struct, frozen=True, kw_only=True):
    """`state`: idle, embedding, folding first, put aside (`why` and `retry_in_s` say more), or off.

    `embedded` texts since the process started, about `waiting` in `spaces` that are not complete; `per_second` of
    late, so that `eta_s` is when all have their vector if nothing else comes; null while that is not known.
    """

    pid: int
    at_us: int
    state: str
    model: str = ""
    why: str = ""
    retry_in_s: float = 0.0
    embedded: int = 0
    waiting: int = 0
    spaces: int = 0
    per_second: float = 0.0
    eta_s: float | None = None


class Teller:
    """Writes the state of one loop in place: at once where it is another one, else once a second at most.

    No name is made after `open`: somebody may be removing the home.
    """

    def __init__(self, home: Home, service: str) -> None:
        self._path = home.run / "embedding" / f"{service}-{os.getpid()}.json"
        self._file: BinaryIO | None = None
        self._said = ""
        self._at = 0.0

    def open(self) -> None:
        with translated_os(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("wb")

    def say(self, state: EmbedState) -> None:
        now = time.monotonic()
        if self._file is None or (state.state == self._said and now - self._at < EVERY_S):
            return
        self._said, self._at = state.state, now
        with contextlib.suppress(OSError):  # a full disk shows by the age of what is there
            os.pwrite(self._file.fileno(), msgspec.json.encode(state).ljust(STATE_BYTES), 0)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)


def embed_states(home: Home, service: str) -> list[EmbedState]:
    """Of the loops of a service that run on this home."""
    found = []
    for path in sorted((home.run / "embedding").glob(f"{service}-*.json")):
        try:
            state = msgspec.json.decode(path.read_bytes(), type=EmbedState)
        except (OSError, msgspec.MsgspecError):
            continue  # it stopped just now
        if alive(state.pid):
            found.append(state)
        else:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
    return found
