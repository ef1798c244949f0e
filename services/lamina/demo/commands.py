"""The verb `demo`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from lamina.cli.command import DONE, FAILED, Command, Context
from lamina.demo.records import Demo
from lamina.errors import Unavailable

STOP_S = 15.0


def _run(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.demo import play, story
    from lamina.demo.report import print_report

    told = story.load()
    began = monotonic()
    with _home(options) as (path, kept), _progress(context) as tell:
        home = type(context.home)(path)
        demo = asyncio.run(play.play(home, told, kept=kept, began=began, tell=tell))
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
    import os
    import shutil
    import tempfile

    for name in [name for name in os.environ if name.startswith("LAMINA_BUS_")]:
        del os.environ[name]  # a bus of the caller's would hear the story
    path = Path(tempfile.mkdtemp(prefix="lamina-demo-"))
    if options.keep:
        yield path, True
        return
    try:
        with _daemon(path):
            yield path, False
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _daemon(home: Path) -> Iterator[None]:
    """A daemon of our own, which ends with the block however that ends, even while it is still starting."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "lamina.cli", "--home", str(home), "up", "--json"]
    with (home / "demo.err").open("w+") as errors:
        child = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        with child:
            try:
                if child.stdout is not None and not child.stdout.readline():
                    errors.seek(0)
                    said = errors.read().strip().splitlines()
                    raise Unavailable(f"the daemon did not come up: {said[-1] if said else 'it said nothing'}")
                yield
            finally:
                child.terminate()
                try:
                    child.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    child.kill()


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
