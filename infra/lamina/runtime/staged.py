"""The files of a view that is made beside the live one: kept apart until it takes its place.

What a fold writes early in the log is not what the file says now, so a rebuild that wrote in place would show
readers the past. Files that are as they would be are left alone; most are, and cost no fsync.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lamina.runtime import edits
from lamina.runtime.files import SpaceFiles
from lamina.runtime.spec import DropFile, WriteFile
from lamina.store.files import translated_os

WRITTEN, DROPPED = "written", "dropped"


class StagedFiles(SpaceFiles):
    """Ledger lines go to the ledger (those that stand there are skipped), files into `folder` until `place`.

    Interrupted at any point, the same folder is gone on with.
    """

    def __init__(self, root: Path, epoch: str, folder: Path) -> None:
        super().__init__(root, epoch)
        self.folder = folder
        self.made: set[str] = set()
        """Paths of files that there are after what was folded here."""

    def _place(self, change: WriteFile | DropFile) -> None:
        target = self._inside(change.path)
        written, dropped = self.folder / WRITTEN / change.path, self.folder / DROPPED / change.path
        with translated_os(target):
            if isinstance(change, WriteFile):
                self.made.add(change.path)
                dropped.unlink(missing_ok=True)
                if _holds(target, change.data):
                    written.unlink(missing_ok=True)
                else:
                    written.parent.mkdir(parents=True, exist_ok=True)
                    written.write_bytes(change.data)
            else:
                self.made.discard(change.path)
                written.unlink(missing_ok=True)
                if target.exists():
                    dropped.parent.mkdir(parents=True, exist_ok=True)
                    dropped.touch()

    def place(self) -> int:
        """Bring the files to where they belong, durably; how many were changed."""
        changed = 0
        with translated_os(self.folder):
            for path in _files(self.folder / WRITTEN):
                target = self._inside(str(path.relative_to(self.folder / WRITTEN)))
                data = path.read_bytes()
                if not _holds(target, data):
                    edits.place(self.root, str(path.relative_to(self.folder / WRITTEN)), data)
                    changed += 1
            for path in _files(self.folder / DROPPED):
                target = self._inside(str(path.relative_to(self.folder / DROPPED)))
                if target.exists():
                    edits.drop(self.root, str(path.relative_to(self.folder / DROPPED)))
                    changed += 1
            self.discard()
        return changed

    def discard(self) -> None:
        """Forget what was staged."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _holds(path: Path, data: bytes) -> bool:
    """Does the file hold these bytes already?"""
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except (FileNotFoundError, NotADirectoryError):
        return False


def _files(folder: Path) -> list[Path]:
    return sorted(Path(where) / name for where, _, names in os.walk(folder) for name in names)
