"""What a person did to a rendered file: told by its seal, read as hostile input, said as lines taken out and put in.

An edited file is never written over: whoever is about to write puts it aside first, and from there (or from where it
stands) it becomes an event, once.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lamina.ids import token
from lamina.runtime.sealing import intact, seal_of, unsealed
from lamina.store.files import sync_folder, translated_os, write_atomic

FOLDER: Final = ".edits"
MAX_BYTES = 128 * 1024
MAX_LINES = 5_000
BROKEN: Final = ".broken-"
"""In the name of a file that was put back: what stood in its place is kept beside it."""
_NUMBERS = itertools.count()


class Found(Struct, frozen=True):
    """A file as it was read: its bytes, or why it is none that a person wrote."""

    data: bytes = b""
    broken: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class Noted(Struct, frozen=True):
    """The last edit of a file that was noticed: its event, and the text that the person left. Written before the
    event is published, so that it is published again, under the same id, by whoever comes after a crash."""

    sha256: str
    seal: str
    text: str
    event: str
    type: str
    raw: str
    seq: int = 0


class Difference(Struct, frozen=True):
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    under: tuple[str, ...] = ()


def look(path: Path) -> Found | None:
    """The file at `path`; None where there is none. A link, folder or pipe is broken, and never followed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Found(broken=f"it cannot be read: {error.strerror}")
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return Found(broken="it is no file")
        data = b""
        while len(data) <= MAX_BYTES and (part := os.read(handle, MAX_BYTES + 1 - len(data))):
            data += part
    except OSError as error:
        return Found(broken=f"it cannot be read: {error.strerror}")
    finally:
        os.close(handle)
    return Found(data, _broken(data))


def _broken(data: bytes) -> str:
    if not data.strip():
        return "it is empty"
    if len(data) > MAX_BYTES:
        return f"it has more than {MAX_BYTES} bytes"
    if b"\x00" in data:
        return "it is binary"
    if data.count(b"\n") > MAX_LINES:
        return f"it has more than {MAX_LINES} lines"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return ""


def difference(base: str, found: str) -> Difference:
    """Which lines a person took out of `base` and put in, and the heading that each stands under. Blank lines and
    the headings of sections say nothing by themselves; under a heading that was renamed nothing has moved. Linear."""
    then, now = _placed(base), _placed(found)
    gone, new = Counter(then) - Counter(now), Counter(now) - Counter(then)
    before, after = {heading for heading, _ in then}, {heading for heading, _ in now}
    renamed = Counter(line for heading, line in gone.elements() if heading not in after)
    renamed &= Counter(line for heading, line in new.elements() if heading not in before)
    removed = [line for _, line in _left(reversed(then), gone, Counter(renamed), lambda one: one not in after)]
    added = _left(now, new, Counter(renamed), lambda one: one not in before)
    return Difference(
        tuple(reversed(removed)), tuple(line for _, line in added), tuple(heading for heading, _ in added)
    )


def _left(
    lines: Iterable[tuple[str, str]],
    changed: Counter[tuple[str, str]],
    renamed: Counter[str],
    moved: Callable[[str], bool],
) -> list[tuple[str, str]]:
    """Those of `lines` that are among `changed`, so often as there, but for what stands under another name."""
    kept = []
    for heading, line in lines:
        if changed[heading, line] > 0:
            changed[heading, line] -= 1
            if moved(heading) and renamed[line] > 0:
                renamed[line] -= 1
            else:
                kept.append((heading, line))
    return kept


def _placed(text: str) -> list[tuple[str, str]]:
    heading, found = "", []
    for raw in text.removeprefix("\ufeff").split("\n"):
        line = raw.rstrip()
        if line.startswith("##"):
            heading = line
        elif line:
            found.append((heading, line))
    return found


def read(data: bytes) -> str:
    """The text of a file without its seal."""
    return unsealed(data).decode("utf-8", "replace")


def put_aside(root: Path, path: str, known: Callable[[str], bool]) -> Path | None:
    """Keep the file at `path` of the space if a person edited it; where it is kept then. `known` tells, by its
    checksum, one that was noticed already."""
    full = root / path
    found = look(full)
    if found is None or intact(found.data) or (not found.broken and known(found.sha256)):
        return None
    folder = root / FOLDER
    kept = folder / f"{token_of(path)}.{time.time_ns()}-{next(_NUMBERS)}.md"
    with translated_os(kept):
        folder.mkdir(exist_ok=True)
        try:
            os.link(full, kept, follow_symlinks=False)  # what is still written into it is kept, too
        except OSError:  # a folder, or a file system without links
            full.rename(kept)
        sync_folder(folder)
    return kept


def aside(root: Path, path: str) -> list[Path]:
    """The edited files that were put aside before others took their place, oldest first."""
    found = (root / FOLDER).glob(f"{token_of(path)}.*.md")
    return sorted(found, key=lambda one: (len(one.name), one.name))


def token_of(path: str) -> str:
    """A name for the path of a rendered file: one that no other has."""
    return hashlib.sha256(path.encode()).hexdigest()[:16] + "-" + token(Path(path).stem[:40])[:40]


def noted(root: Path, path: str) -> Noted | None:
    """The last edit of a file that was noticed."""
    try:
        return msgspec.json.decode(_note(root, path).read_bytes(), type=Noted)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def note(root: Path, path: str, one: Noted) -> None:
    write_atomic(_note(root, path), msgspec.json.encode(one))


def _note(root: Path, path: str) -> Path:
    return root / FOLDER / f"{token_of(path)}.json"


def beside(kept: Path, full: Path) -> Path:
    """Move what cannot be taken in to a name beside the rendered file at `full`."""
    path = full.with_name(f"{full.name}{BROKEN}{time.time_ns():x}-{next(_NUMBERS)}")
    with translated_os(full):
        full.parent.mkdir(parents=True, exist_ok=True)
        kept.rename(path)
        sync_folder(full.parent)
    return path


def place(root: Path, path: str, data: bytes) -> None:
    """Write a rendered file; one that a person edited is kept until it has become an event."""
    kept = None
    if seal_of(data):
        last = noted(root, path)
        kept = put_aside(root, path, lambda sha256: last is not None and last.sha256 == sha256)
    write_atomic(root / path, data)
    if kept is not None and intact((look(kept) or Found()).data):
        kept.unlink(missing_ok=True)


def drop(root: Path, path: str) -> None:
    """Remove a rendered file that is no more; one that a person edited is put aside."""
    full = root / path
    found = look(full)
    if found is not None and seal_of(found.data) and not intact(found.data):
        last = noted(root, path)
        put_aside(root, path, lambda sha256: last is not None and last.sha256 == sha256)
    with translated_os(full):
        full.unlink(missing_ok=True)
        if full.parent.is_dir():
            sync_folder(full.parent)
    leave(root, full.parent)


def leave(root: Path, folder: Path) -> None:
    """Remove a folder made for one file (`skills/<name>/`) once it is empty: its name says what was in it."""
    if folder.parent == root or not folder.is_relative_to(root) or folder == root:
        return
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT, errno.EEXIST):
            with translated_os(folder):
                raise
        return
    with translated_os(folder):
        sync_folder(folder.parent)


def files(root: Path, patterns: Sequence[str]) -> Iterator[str]:
    """The files of a space that people may edit, by their paths."""
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            if not path.name.startswith("."):
                yield str(path.relative_to(root))
