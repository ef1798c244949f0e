"""One run of `lamina import`: a connection, files one after the other, and waiting for what becomes of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from lamina import config
from lamina.client.link import Link
from lamina.client.redact import Redactor
from lamina.home import Home
from lamina.importer.log import open_log
from lamina.importer.progress import Progress
from lamina.importer.publish import Publisher
from lamina.importer.records import BadRecord

SETTLE_S = 6 * 3600.0


class Run:
    """Imports files into one space of one home. `terminal` shows a bar; `on_file` gets the result of each file.

    `wait` names the layers that must have taken everything in (None: all of them). An error of one file ends the
    run; the files before it are imported.
    """

    def __init__(
        self,
        home: Home,
        space: str,
        *,
        format: str,
        skip_bad: bool,
        again: bool = False,
        wait: tuple[str, ...] | None,
        terminal: TextIO | None,
        on_bad: Callable[[BadRecord], None],
        on_file: Callable[[Progress], None],
    ) -> None:
        self._home = home
        self._space = space
        self._format = format
        self._skip_bad = skip_bad
        self._again = again
        self._wait = wait
        self._terminal = terminal
        self._on_bad = on_bad
        self._on_file = on_file

    async def __call__(self, files: Sequence[str]) -> None:
        settings = config.load(self._home.config)
        link = Link(
            self._home,
            url=settings.bus.url,
            credentials=settings.bus.credentials,
            outbox_bytes=settings.outbox.max_bytes,
        )
        try:
            await link.open()
            with _shown(self._terminal) as show:
                publisher = Publisher(
                    lambda: link.bus,
                    self._space,
                    skip_bad=self._skip_bad,
                    again=self._again,
                    on_bad=self._on_bad,
                    on_progress=show,
                    redactor=Redactor(settings.offload.redact),
                )
                for file in files:
                    with open_log(file, self._format) as log:
                        self._on_file(await publisher.publish(log))
            await publisher.settled(self._wait, SETTLE_S)
        finally:
            await link.close()


@contextlib.contextmanager
def _shown(terminal: TextIO | None) -> Iterator[Callable[[Progress], None]]:
    """A bar with rate and time left on a terminal, nothing elsewhere."""
    if terminal is None:
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    said = TextColumn("{task.fields[said]}")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), said, TimeRemainingColumn())
    with Bar(*columns, console=Console(file=terminal), transient=True) as bar:
        tasks = {}

        def show(progress: Progress) -> None:
            if progress.file not in tasks:
                tasks[progress.file] = bar.add_task(progress.file, total=progress.size_bytes, said="")
            records = progress.turns + progress.calls + progress.known
            bar.update(
                tasks[progress.file],
                completed=progress.position_bytes,
                said=f"{records:,} records, {progress.rate:,.0f}/s",
            )

        yield show
