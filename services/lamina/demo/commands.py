"""The verb `demo`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from lamina.cli.command import DONE, FAILED, Command, Context
from lamina.demo.records import Demo


def _run(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.demo import play, story
    from lamina.demo.report import print_report

    told = story.load()
    with _home(options) as (path, kept), _progress(context) as tell:
        home = type(context.home)(path)
        demo = asyncio.run(play.play(home, told, kept=kept, tell=tell))
    if context.json:
        context.document(demo)
    else:
        print_report(context.printer, demo, told)
    return DONE if all(answer.hits.status == "found" for answer in demo.answers) else FAILED


@contextlib.contextmanager
def _home(options: argparse.Namespace) -> Iterator[tuple[Path, bool]]:
    """The home to play in, and whether it stays: the one that `--home` names, else one made for this run."""
    if options.home is not None:
        yield Path(options.home), True
        return
    import shutil
    import tempfile

    path = Path(tempfile.mkdtemp(prefix="lamina-demo-"))
    if options.keep:
        yield path, True
        return
    try:
        yield path, False
    finally:
        _end(path)
        shutil.rmtree(path, ignore_errors=True)


def _end(path: Path) -> None:
    from lamina.cli.daemon import stop
    from lamina.cli.running import running
    from lamina.home import Home

    home = Home(path)
    daemon = running(home)
    if daemon is not None:
        stop(home, daemon.pid)


@contextlib.contextmanager
def _progress(context: Context) -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal; nothing elsewhere."""
    if context.json or not context.err.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(file=context.err).status("") as status:
        yield lambda text: status.update(f"{text} …")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave the temporary home, to look around in")


demo = Command(
    name="demo",
    help="play a bundled session and show what was remembered",
    description="Play a bundled session in four languages, with tool results, through the real log, and show what "
    "was remembered of it. Without --home it plays in a temporary home that is removed afterwards; nothing of yours "
    "is touched. Playing it twice into one home changes nothing.",
    run=_run,
    configure=_options,
    examples=("lamina demo", "lamina demo --keep", "lamina --home ~/lamina-demo demo", "lamina demo --json"),
    outputs={"demo": Demo},
)
