"""Progress on a terminal: what is done, and how much of it; nothing elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lamina.forget.plan import Told


@contextlib.contextmanager
def shown(terminal: TextIO | None) -> Iterator[Told]:
    """What to call with each step for the length of the block."""
    if terminal is None:
        yield lambda step, done, total: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=terminal), transient=True) as bar:
        task = bar.add_task("", total=None)
        now = ""

        def show(step: str, done: int, total: int) -> None:
            nonlocal now
            if step != now:
                now = step
                bar.reset(task, description=step, total=total or None)
            bar.update(task, completed=done, total=total or None)

        yield show
