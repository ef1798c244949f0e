"""The memory that a verb asks: as it is, or as it was known at a moment, once the views of that moment are made."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from datetime import time as clock
from typing import TYPE_CHECKING, TypeVar

from lamina import times
from lamina.cli.command import Context
from lamina.errors import Invalid, Unavailable
from lamina.records import AsOf
from lamina.requests import Past, PastIs

if TYPE_CHECKING:  # the client loads the bus, which the list of verbs does not need
    from lamina.client import Memory

R = TypeVar("R")
LOOK_S = 0.1
PATIENCE_S = 600.0


def with_memory(context: Context, work: Callable[[Memory], Awaitable[R]]) -> R:
    """`work` on the memory that the global options name."""
    import asyncio

    from lamina.client import Memory

    async def run() -> R:
        async with Memory.open(space=context.space, home=context.home.path) as memory:
            return await work(memory)

    return asyncio.run(run())


def with_past(
    context: Context, as_of: AsOf | None, services: Sequence[str], work: Callable[[Memory], Awaitable[R]]
) -> R:
    """As `with_memory`, once the views of these services are made as of then; how far they are is said on a
    terminal. `Unavailable` after ten minutes: asked again it goes on."""

    async def run(memory: Memory) -> R:
        if as_of is not None:
            await _made(context, memory, Past(as_of=as_of, services=tuple(services)))
        return await work(memory)

    return with_memory(context, run)


async def _made(context: Context, memory: Memory, request: Past) -> None:
    import asyncio

    with _shown(context) as show:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (now := await memory.ask("past", request, PastIs)).ready:
                    show(now)
                    await asyncio.sleep(LOOK_S)
        except TimeoutError as error:
            raise Unavailable("the memory of then is not made yet; ask again, and it goes on") from error


@contextlib.contextmanager
def _shown(context: Context) -> Iterator[Callable[[PastIs], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not context.err.isatty():
        yield lambda now: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("event {task.completed:,.0f}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(file=context.err), transient=True) as bar:
        task = bar.add_task("what was known then", total=None)
        yield lambda now: bar.update(task, total=now.end or None, completed=now.at)


def moment(text: str, *, end: bool) -> datetime:
    """RFC 3339 with an offset, or a day (2026-11-30) of this machine's zone: its first or last moment."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        try:
            return times.parse(text)
        except Invalid as error:
            raise Invalid(f"{error}, nor a day such as 2026-11-30") from error
    first = datetime.combine(day, clock()).astimezone()
    return first + timedelta(days=1, microseconds=-1) if end else first


def as_of(options: argparse.Namespace) -> AsOf | None:
    """What `--as-of` says: a position, or a time, of a day its last moment."""
    from lamina.client import inputs

    if options.as_of is None:
        return None
    with contextlib.suppress(ValueError):
        date.fromisoformat(options.as_of)
        return AsOf(time=moment(options.as_of, end=True))
    return inputs.as_of(options.as_of)


def as_of_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-of",
        metavar="SEQ|TIME",
        help="as it was known after that event of the log (17, or EPOCH:17), or at that day or time",
    )
