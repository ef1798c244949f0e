"""What is kept beside the views of a space and may be removed at any time: views of the past that are in use, in
`run/past/<pid>/<space>/<n>`, and shadows, in the space's `shadow/<name>`."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from lamina.home import Home, alive

SHADOWS = "shadow"


def pasts_folder(home: Home) -> Path:
    """That of this process."""
    return home.run / "past" / str(os.getpid())


def sweep(home: Home) -> None:
    """Remove what processes left that are gone."""
    for folder in _folders(home.run / "past"):
        if folder.name == str(os.getpid()) or not folder.name.isdigit() or not alive(int(folder.name)):
            shutil.rmtree(folder, ignore_errors=True)


def discard_pasts(home: Home, space: str) -> None:
    """Remove all of it in a space (its token): what was forgotten is in none of it. A view of the past is made anew
    by whoever reads it, a shadow by its command."""
    for folder in _folders(home.run / "past"):
        shutil.rmtree(folder / space, ignore_errors=True)
    shutil.rmtree(home.spaces / space / SHADOWS, ignore_errors=True)


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return [path for path in folder.iterdir() if path.is_dir()]
    return []
