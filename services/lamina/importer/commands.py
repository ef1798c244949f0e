"""The verb `import`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Callable, Iterator

import msgspec
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from lamina import config
from lamina.cli.command import DONE, Command, Context
from lamina.client.link import Link
from lamina.importer.formats import FORMATS
from lamina.importer.log import open_log
from lamina.importer.publish import Progress, Publisher
from lamina.importer.records import BadRecord

WAITS: dict[str, tuple[str, ...] | None] = {"l0": ("l0",), "l1": ("l0", "l1"), "all": None}
SETTLE_S = 6 * 3600.0
SHOWN = 20
"""Bad records shown one by one; the rest is counted."""


def _run(context: Context, options: argparse.Namespace) -> int:
    return asyncio.run(_import(context, options))


async def _import(context: Context, options: argparse.Namespace) -> int:
    settings = config.load(context.home.config)
    link = Link(
        context.home,
        url=settings.bus.url,
        credentials=settings.bus.credentials,
        outbox_bytes=settings.outbox.max_bytes,
    )
    try:
        await link.open()
        with _shown(context) as show:
            publisher = Publisher(
                lambda: link.bus,
                context.space,
                skip_bad=options.skip_bad,
                on_bad=_Bad(context),
                on_progress=show,
            )
            for file in options.files:
                with open_log(file, options.format) as log:
                    _report(context, await publisher.publish(log))
        await publisher.settled(WAITS[options.wait], SETTLE_S)
    finally:
        await link.close()
    return DONE


class _Bad:
    """Tells of bad records on stderr, the first ones one by one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._n = 0

    def __call__(self, bad: BadRecord) -> None:
        self._n += 1
        if self._n <= SHOWN:
            self._context.note(f"lamina: bad record: {bad}")
        elif self._n == SHOWN + 1:
            self._context.note("lamina: more bad records follow; they are counted")


@contextlib.contextmanager
def _shown(context: Context) -> Iterator[Callable[[Progress], None]]:
    """A bar with rate and time left on a terminal, nothing elsewhere."""
    if not context.err.isatty():
        yield lambda progress: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(file=context.err), transient=True) as bar:
        tasks = {}

        def show(progress: Progress) -> None:
            if progress.file not in tasks:
                tasks[progress.file] = bar.add_task(progress.file, total=progress.size_bytes, rate="")
            said = f"{progress.turns + progress.calls + progress.known:,} records, {progress.rate:,.0f}/s"
            bar.update(tasks[progress.file], completed=progress.position_bytes, rate=said)

        yield show


def _report(context: Context, done: Progress) -> None:
    if context.json:
        context.document(
            {**msgspec.structs.asdict(done), "seconds": round(done.seconds, 3), "rate": round(done.rate, 1)}
        )
        return
    context.line(
        f"{done.file} ({done.format}): {_many(done.turns, 'turn')} and {_many(done.calls, 'tool result')} "
        f"of {_many(done.sessions, 'session')} imported"
    )
    if done.known:
        context.line(f"  {done.known:,} were known already and changed nothing")
    for why, count in sorted(done.skipped.items(), key=lambda entry: -entry[1]):
        context.line(f"  {count:,} skipped: {why}")
    if done.bad:
        context.line(f"  {_many(done.bad, 'bad record')} left out")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a log, gzip or not; - is standard input")
    parser.add_argument(
        "--format",
        choices=("auto", *FORMATS),
        default="auto",
        metavar="NAME",
        help=f"auto (found by content, the default), or one of: {', '.join(FORMATS)}",
    )
    parser.add_argument(
        "--wait",
        choices=tuple(WAITS),
        default="l1",
        help="return when this is done: l0 searchable, l1 facts taken out (default), all every layer",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out what cannot be read, and tell of it, instead of stopping"
    )


command = Command(
    name="import",
    help="read logs of conversations into memory",
    description="Read logs of conversations into memory, with their own times and ids. The format is found by its "
    "content. Importing a log again changes nothing, so an import that was interrupted is simply begun again, and a "
    "log that has grown is brought up to date.",
    run=_run,
    configure=_options,
    examples=(
        "lamina import ~/.claude/projects/*/*.jsonl --space me",
        "lamina import chat.json.gz --space alice --wait l0",
        "zcat old.jsonl.gz | lamina import - --format jsonl --skip-bad",
    ),
)
