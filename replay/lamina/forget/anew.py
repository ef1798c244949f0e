"""The views of a space folded anew from what is left, and what stood beside them: rendered files, vectors.

Deleting rows leaves bytes behind: in free pages, in write-ahead logs, in the words of an index until its segments are
merged. A view that was made after the erasure never had them.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

from msgspec import Struct, field

from lamina.bus import Bus
from lamina.errors import Busy, LaminaError
from lamina.forget.plan import Told
from lamina.home import Home
from lamina.rebuild.progress import Progress
from lamina.rebuild.view import rebuild_view
from lamina.runtime.edits import BROKEN, FOLDER, leave
from lamina.runtime.embedcache import removed
from lamina.runtime.registry import fold_services
from lamina.store.driver import connect, translated
from lamina.store.files import sync_folder, translated_os

RENDERED = (
    *("persona.md", "refs/*.md", "canvas/*.mmd", "scenarios/*.md", "skills/*/SKILL.md"),
    *(f"{FOLDER}/*", f"*{BROKEN}*", f"scenarios/*{BROKEN}*", f"skills/*/*{BROKEN}*"),
)
"""What services write for people, and what they keep of what people did to it."""
PATIENCE_S = 30.0
LOOK_S = 0.05


class Anew(Struct):
    """What became of a space's derived things."""

    views: list[str] = field(default_factory=list)
    files: int = 0
    vectors: int = 0


async def views(home: Home, bus: Bus, space: str, told: Told, *, since: float) -> Anew:
    """Fold every view of the space anew, then remove rendered files that no fold makes any more (older than `since`,
    a time of `time.time`), views of services that are not installed, and vectors of texts that are gone."""
    root = home.spaces / space
    done = Anew()
    made: set[str] = set()

    def moved(progress: Progress) -> None:
        told(f"folding {progress.service} anew", progress.events, max(progress.total, progress.events))

    for name, service in sorted(fold_services().items(), key=lambda pair: pair[0] != "journal"):
        await rebuild_view(service, bus, home, space, moved, anew=True, made=made)
        done.views.append(name)
    done.files = _strangers(root / "views") + _orphans(root, made, since)
    done.vectors = await vectors(root)
    return done


async def vectors(root: Path) -> int:
    """Drop the vectors of texts that are no more, down to the last byte; how many. One that is damaged is removed."""
    texts = _hashes(root / "views" / "vectors.db", "SELECT hash FROM texts UNION SELECT hash FROM derived")
    dropped = 0
    for path in sorted((root / "cache").glob("embeddings-*.db")):
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                dropped += await asyncio.to_thread(_drop, path, texts)
                break
            except Busy:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(LOOK_S)
            except LaminaError:
                removed(path)
                break
    return dropped


def _drop(path: Path, texts: set[str]) -> int:
    with translated(path):
        db: sqlite3.Connection = connect(path, readonly=False)
        try:
            gone = [row for row in db.execute("SELECT hash FROM vectors") if row[0] not in texts]
            if gone:
                db.execute("PRAGMA secure_delete=ON")
                db.execute("BEGIN IMMEDIATE")
                db.executemany("DELETE FROM vectors WHERE hash = ?", gone)
                db.execute("COMMIT")
                db.execute("VACUUM")
            if db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise Busy(f"{path.name}: another process reads the vectors")
        finally:
            db.close()
    return len(gone)


def _hashes(link: Path, sql: str) -> set[str]:
    if not link.exists():
        return set()
    path = link.resolve()
    with translated(path):
        db: sqlite3.Connection = connect(path, readonly=True)
        try:
            return {row[0] for row in db.execute(sql)}
        finally:
            db.close()


def _strangers(folder: Path) -> int:
    """Views of services that are not installed (any more) are made again should they come back."""
    known = set(fold_services())
    gone = [path for path in folder.glob("*.db*") if path.name.split(".")[0] not in known]
    with translated_os(folder):
        for path in gone:
            path.unlink(missing_ok=True)
    return len(gone)


def _orphans(root: Path, made: set[str], since: float) -> int:
    files = 0
    for pattern in RENDERED:
        for path in sorted(root.glob(pattern)):
            if str(path.relative_to(root)) not in made and path.lstat().st_mtime < since:
                with translated_os(path):
                    path.unlink(missing_ok=True)
                    sync_folder(path.parent)
                leave(root, path.parent)
                files += 1
    return files
