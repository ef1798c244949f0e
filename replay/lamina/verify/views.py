"""Every view held against what a fold of the log makes: its tables, its index, its files."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct

from lamina.bus import Bus
from lamina.errors import Busy
from lamina.runtime.apply import read_meta
from lamina.runtime.edits import BROKEN
from lamina.runtime.scratch import ScratchView, scratch
from lamina.runtime.spec import Service
from lamina.store.driver import Damaged, connect, translated
from lamina.verify.digests import digest_of
from lamina.verify.ledger import Look, orphan

JOURNAL = "journal"
ROUNDS = 5


class _Stand(Struct, frozen=True):
    """A live view at one moment."""

    seq: int
    digests: dict[str, str]


async def view(service: Service[Any], bus: Bus, root: Path, look: Look, kept: set[str]) -> None:
    """Compare one view; into `kept` go the blobs that it keeps on disk."""
    heal = f"replay rebuild {service.name}"
    link = root / "views" / f"{service.name}.db"
    with tempfile.TemporaryDirectory(prefix="lamina-verify-") as folder:
        async with scratch(service, bus, root, Path(folder)) as made:
            try:
                await _compared(service, bus, link, made, look, heal)
            except Damaged as error:
                look.find("view.damaged", f"views/{link.name}", str(error), heal)
                await made.catch_up(1 << 62)
            kept |= {path.removeprefix("blobs/") for path in made.files.made if path.startswith("blobs/")}
            _files(root, made, look, heal)


async def _compared(service: Service[Any], bus: Bus, link: Path, made: ScratchView, look: Look, heal: str) -> None:
    where = f"views/{link.name}"
    for _ in range(ROUNDS):
        stand = _stand(service, bus.epoch, link, look, heal)
        if stand is None:
            await made.catch_up(1 << 62)
            return
        await made.catch_up(stand.seq + 1)
        wanted = await made.view.read(digest_of)
        names = wanted.keys() | stand.digests.keys()
        differing = [name for name in names if wanted.get(name) != stand.digests.get(name)]
        if _seq(link) == stand.seq or not made.files.differing():
            if service.name == JOURNAL and "events" in differing:
                await made.view.read(lambda db: _lost(db, link, stand.seq, look))  # noqa: B023 - awaited
            for name in sorted(differing):
                look.find("view.differs", f"{where}: {name}", "its rows are not those that the log gives", heal)
            return
    raise Busy(f"{service.name}: the view moves on faster than it can be compared; verify when less is written")


def _stand(service: Service[Any], epoch: str, link: Path, look: Look, heal: str) -> _Stand | None:
    """Position and digests of the live view in one read transaction; None, and a finding, where it cannot be used."""
    where = f"views/{link.name}"
    if not link.exists():
        look.find("view.missing", where, "there is none", heal)
        return None
    path = link.resolve()
    with translated(path):
        db = connect(path, readonly=True)
        try:
            told = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
            if told != ["ok"]:
                raise Damaged("; ".join(told))
            db.execute("BEGIN")
            version, of = read_meta(db, "version", None), read_meta(db, "epoch", None)
            if (version, of) != (service.version, epoch):
                detail = f"it is of version {version} and epoch {of!r}, not {service.version} and {epoch!r}"
                look.find("view.stale", where, detail, heal)
                return None
            return _Stand(int(read_meta(db, "applied_seq", 0)), digest_of(db))
        finally:
            db.close()


def _lost(made: sqlite3.Connection, link: Path, seq: int, look: Look) -> None:
    """Events up to `seq` that the journal's view knows of, and neither log nor ledger: they were there once. One that
    was erased on request is none of them."""
    path = link.resolve()
    with translated(path), contextlib.closing(connect(path, readonly=True)) as db:
        for id, at in db.execute("SELECT id, seq FROM events WHERE seq <= ? ORDER BY seq", (seq,)):
            told = made.execute("SELECT 1 FROM events WHERE id = ? OR seq = ?", (id, at)).fetchone()
            if told is None and at not in look.alone and id not in look.erased:
                detail = f"event {at} ({id!a}) is in neither log nor ledger: a rebuild takes out what views say of it"
                look.find("event.lost", f"views/{link.name}", detail, lost=True)


def _own(name: str) -> bool:
    """Is it hidden, or what a person left in the place of a rendered file?"""
    return name.startswith(".") or BROKEN in name


def _seq(link: Path) -> int:
    path = link.resolve()
    with translated(path):
        db = connect(path, readonly=True)
        try:
            return int(read_meta(db, "applied_seq", 0))
        finally:
            db.close()


def _files(root: Path, made: ScratchView, look: Look, heal: str) -> None:
    """Rendered files are what the fold makes of them, and there are no others in its folders."""
    for name in made.files.differing():
        look.find("file.differs", name, "it is not what the log gives", heal)
    folders = {name.split("/")[0] for name in made.files.made if "/" in name} - {"blobs"}
    for path in (path for folder in sorted(folders) for path in sorted((root / folder).rglob("*"))):
        name = str(path.relative_to(root))
        if path.is_file() and not _own(path.name) and name not in made.files.made:
            look.find("file.orphan", name, "nothing in the log makes it", orphan(path))
