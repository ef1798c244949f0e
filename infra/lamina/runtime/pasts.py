"""Where views of the past are kept while they are in use: `run/past/<pid>/<space>/<n>`, disposable at any time."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from lamina.home import Home, alive


def pasts_folder(home: Home) -> Path:
    """That of this process."""
    return home.run / "past" / str(os.getpid())


def sweep(home: Home) -> None:
    """Remove what processes left that are gone."""
    for folder in _folders(home.run / "past"):
        if folder.name == str(os.getpid()) or not folder.name.isdigit() or not alive(int(folder.name)):
            shutil.rmtree(folder, ignore_errors=True)


def discard_pasts(home: Home, space: str) -> None:
    """Remove every view of the past of a space (its token): what was forgotten is in none of them. Whoever reads one
    of them makes it anew."""
    for folder in _folders(home.run / "past"):
        shutil.rmtree(folder / space, ignore_errors=True)


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return [path for path in folder.iterdir() if path.is_dir()]
    return []
