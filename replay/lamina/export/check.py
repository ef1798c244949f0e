"""Reading an archive that anybody may have made: nothing of it is believed before all of it was looked at.

A tar can name any path, link anywhere, and claim any size. So members are never extracted by their names: a name is
either one of ours or the archive is refused, and bytes go to files that we name.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from lamina.errors import Denied, Invalid, TooLarge
from lamina.events import MAX_BLOB_BYTES
from lamina.export.archive import EVENTS, MANIFEST
from lamina.export.records import FORMAT, VERSION, Manifest, Member
from lamina.ids import token

MAX_MANIFEST_BYTES = 256 * 1024 * 1024
MAX_FILE_BYTES = 64 * 1024 * 1024
_BLOB = re.compile(r"blobs/[0-9a-f]{64}")
_HUMAN = re.compile(
    r"files/(?:persona\.md|(?:refs|canvas|scenarios)/[a-z0-9_-]{1,255}\.(?:md|mmd)|"
    r"skills/[a-z0-9_-]{1,255}/SKILL\.md)"
)
_PART = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[tarfile.TarFile]:
    """The tar at `path`; `Invalid` for what is none or is cut, `Denied` for what cannot be read."""
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError, ValueError, OverflowError, UnicodeError) as error:
        raise Invalid(f"{path} is no archive of a space, or it is cut: {error}") from error
    except OSError as error:
        raise Denied(f"{path} cannot be read: {error.strerror or error}") from error


def checked(path: Path) -> Manifest:
    """The manifest of an archive that is whole; otherwise `Invalid` or `TooLarge`, naming what is wrong with it."""
    found: dict[str, Member] = {}
    manifest: Manifest | None = None
    with opened(path) as tar:
        for info in tar:
            name = info.name
            if manifest is not None:
                raise Invalid(f"{path}: {name!a} stands behind the manifest")
            if name in found or not info.isreg() or info.issparse() or not _known(name):
                raise Invalid(f"{path}: {name[:200]!a} has no place in an archive of a space")
            _bounded(path, info)
            if name == MANIFEST:
                manifest = _manifest(path, _bytes(tar, info))
            else:
                found[name] = Member(info.size, _sha256(tar, info))
    if manifest is None:
        raise Invalid(f"{path} is cut: its manifest is missing; make the archive again")
    if found != manifest.members:
        wrong = sorted(
            name for name in found.keys() | manifest.members.keys() if found.get(name) != manifest.members.get(name)
        )
        raise Invalid(f"{path}: {wrong[0]!a} is not what the manifest says; make the archive again")
    if EVENTS not in found:
        raise Invalid(f"{path} holds no events")
    return manifest


def unpack(path: Path, folder: Path) -> None:
    """Write events and blobs of an archive that was `checked` into `folder`. `Invalid` where it changed since."""
    (folder / "blobs").mkdir(parents=True)
    with opened(path) as tar:
        for info in tar:
            if info.isreg() and (info.name == EVENTS or _BLOB.fullmatch(info.name)):
                _copy(tar, info, folder / info.name)


def _known(name: str) -> bool:
    return name in (EVENTS, MANIFEST) or bool(_BLOB.fullmatch(name) or _HUMAN.fullmatch(name))


def _bounded(path: Path, info: tarfile.TarInfo) -> None:
    most = {EVENTS: path.stat().st_size, MANIFEST: MAX_MANIFEST_BYTES}.get(
        info.name, MAX_BLOB_BYTES if info.name.startswith("blobs/") else MAX_FILE_BYTES
    )
    if not 0 <= info.size <= most:
        raise TooLarge(f"{path}: {info.name!a} says that it has {info.size} bytes; at most {most} are allowed")


def _manifest(path: Path, raw: bytes) -> Manifest:
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{path}: its manifest cannot be read: {error}") from error
    if (manifest.format, manifest.version) != (FORMAT, VERSION):
        raise Invalid(f"{path} is {manifest.format[:40]!a} version {manifest.version}, not {FORMAT} {VERSION}")
    token(manifest.space)
    return manifest


def _parts(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(info)
    left = info.size
    while file is not None and left > 0:
        part = file.read(min(_PART, left))
        if not part:
            raise Invalid(f"{info.name!a} ends before its size: the archive is cut; make it again")
        left -= len(part)
        yield part


def _bytes(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    return b"".join(_parts(tar, info))


def _sha256(tar: tarfile.TarFile, info: tarfile.TarInfo) -> str:
    digest = hashlib.sha256()
    for part in _parts(tar, info):
        digest.update(part)
    return digest.hexdigest()


def _copy(tar: tarfile.TarFile, info: tarfile.TarInfo, target: Path) -> None:
    with target.open("xb") as file:
        for part in _parts(tar, info):
            file.write(part)
