"""The proof: pieces of what was erased, looked for in every message and in every file.

The log's blocks are compressed, and a plain look at them shows nothing; so its messages are read through the bus.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from lamina.bus import Bus, Message
from lamina.forget.pieces import MOST_BYTES, Pieces
from lamina.home import Home
from lamina.ids import SUBJECT_ROOT, lane

BATCH = 500
FETCH_S = 5.0
PART_BYTES = 4 << 20
SHOWN = 20


class Proof(Struct):
    """Where it was looked, and where something was found."""

    messages: int = 0
    files: int = 0
    found: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    def find(self, where: str) -> None:
        if len(self.found) < SHOWN:
            self.found.append(where)


async def prove(home: Home, bus: Bus, space: str, pieces: Pieces) -> Proof:
    """Look for the pieces in the messages of the space (a token) and in the files of the home but those of other
    spaces, which may say the same on their own."""
    proof = Proof()
    await _messages(bus, space, pieces, proof)
    await asyncio.to_thread(_files, home, space, pieces, proof)
    return proof


async def _messages(bus: Bus, space: str, pieces: Pieces, proof: Proof) -> None:
    subjects = [f"{SUBJECT_ROOT}.{kind}.{lane(space)}.{space}.>" for kind in ("ev", "blob")]
    for subject in subjects:
        if await bus.next(subject, 0) is None:
            continue
        reader = bus.read([subject], after=0, name="proof")
        try:
            while messages := await reader.fetch(BATCH, FETCH_S):
                proof.messages += len(messages)
                for seq in await asyncio.to_thread(_seqs, messages, pieces):
                    proof.find(f"message {seq} of the log")
                if not reader.pending:
                    break
        finally:
            await reader.close()


def _seqs(messages: Sequence[Message], pieces: Pieces) -> list[int]:
    return [one.seq for one in messages if next(pieces.within(one.data), None) is not None]


def _files(home: Home, space: str, pieces: Pieces, proof: Proof) -> None:
    for path in _paths(home, space):
        where = str(path.relative_to(home.path))
        try:
            proof.files += 1
            if _holds(path, pieces):
                proof.find(where)
        except FileNotFoundError:
            proof.files -= 1  # it went while the folder was read
        except OSError as error:
            proof.unseen.append(f"{where}: {error.strerror}")


def _paths(home: Home, space: str) -> Iterator[Path]:
    """Every file of the space, and of the home what belongs to no space. The log's blocks were read by messages."""
    jetstream = home.bus / "jetstream"
    for path in sorted(home.path.rglob("*")):
        own = home.spaces not in path.parents or home.spaces / space in path.parents
        if own and jetstream not in path.parents and path.is_file() and not path.is_symlink():
            yield path


def _holds(path: Path, pieces: Pieces) -> bool:
    """Does a file hold one of the pieces, wherever its parts begin?"""
    with contextlib.closing(path.open("rb")) as file:
        kept = b""
        while part := file.read(PART_BYTES):
            if next(pieces.within(kept + part), None) is not None:
                return True
            kept = (kept + part)[-MOST_BYTES:]
    return False
