"""What an archive says of itself, and what the verbs tell."""

from __future__ import annotations

from msgspec import Struct

FORMAT = "lamina-space"
VERSION = 1


class Member(Struct, frozen=True):
    """A file of the archive: its size and the SHA-256 of its bytes."""

    size_bytes: int
    sha256: str


class Manifest(Struct, frozen=True, kw_only=True):
    """The last file of an archive: without it, or where it names something else than what is there, the archive is
    none. `epoch` and `seq` say up to where in which log it goes."""

    format: str
    version: int
    space: str
    events: int
    epoch: str
    seq: int
    made: str
    members: dict[str, Member]


class Exported(Struct, frozen=True, kw_only=True):
    """What `lamina export --json` says of one space."""

    space: str
    file: str
    format: str
    events: int
    blobs: int
    size_bytes: int


class Restored(Struct, frozen=True, kw_only=True):
    """What `lamina restore --json` says: of `events` in the archive, `published` are new here; `known` were here
    already, `forgotten` were erased here, or in the archive, and stay so."""

    space: str
    file: str
    events: int
    published: int
    known: int
    forgotten: int
