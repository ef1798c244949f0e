"""The verb `import`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lamina.cli.command import DONE, Command, Context
from lamina.importer.formats import FORMATS
from lamina.importer.progress import Imported, imported

if TYPE_CHECKING:
    from lamina.importer.records import BadRecord

WAITS: dict[str, tuple[str, ...] | None] = {"l0": ("l0",), "l1": ("l0", "l1"), "all": None}
SHOWN = 20
"""Bad records shown one by one; the rest is counted."""


def _run(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.importer.run import Run

    run = Run(
        context.home,
        context.space,
        format=options.format,
        skip_bad=options.skip_bad,
        again=options.again,
        wait=WAITS[options.wait or _furthest()],
        terminal=context.err if context.err.isatty() else None,
        on_bad=_Bad(context),
        on_file=lambda progress: _report(context, imported(progress)),
    )
    asyncio.run(run(options.files))
    return DONE


def _furthest() -> str:
    """What is waited for unless it is said: l1, or l0 where no service makes l1."""
    from importlib.metadata import entry_points

    # by name alone: to load all services takes as long as to import some thousand turns
    return "l1" if "atoms" in entry_points(group="lamina.services").names else "l0"


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


def _report(context: Context, done: Imported) -> None:
    if context.json:
        context.document(done)
        return
    context.line(
        f"{done.file} ({done.format}): {_many(done.turns, 'turn')} and {_many(done.calls, 'tool result')} imported, "
        f"{_many(done.sessions, 'session')} seen"
    )
    if done.known:
        context.line(f"  {done.known:,} known already, nothing changed")
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
        help="return when it is searchable (l0), when facts are taken out (l1, the default), or when all is done",
    )
    parser.add_argument(
        "--again", action="store_true", help="remember also what was forgotten on request, which is else left out"
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
        "lamina import chat.json.gz --space alice --wait l0   # return as soon as it is searchable",
        "zcat old.jsonl.gz | lamina import - --format jsonl --skip-bad",
    ),
    outputs={"import": Imported},
)
