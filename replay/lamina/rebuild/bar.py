"""Progress on a terminal: a bar with rate and time left, nothing elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from lamina.rebuild.progress import Moved, Progress


@contextlib.contextmanager
def shown(terminal: TextIO | None) -> Iterator[Moved]:
    """What to call with the progress of each view for the length of the block."""
    if terminal is None:
        yield lambda progress: None
        return
    said = TextColumn("{task.fields[said]}")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), said, TimeRemainingColumn())
    with Bar(*columns, console=Console(file=terminal), transient=True) as bar:
        tasks: dict[tuple[str, str], TaskID] = {}

        def show(progress: Progress) -> None:
            key = (progress.space, progress.service)
            if key not in tasks:
                tasks[key] = bar.add_task(f"{progress.space!a} {progress.service}", said="")
            total = max(progress.total, progress.events)
            done = f"{progress.events:,} events, {progress.rate:,.0f}/s"
            bar.update(tasks[key], total=total, completed=progress.events, said=done)

        yield show
