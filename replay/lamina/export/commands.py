"""The verbs `export` and `restore`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lamina.cli.command import DONE, Command, Context
from lamina.errors import Invalid
from lamina.export.records import Exported, Restored

if TYPE_CHECKING:
    from lamina.bus import Bus

FORMATS = ("archive", "jsonl", "markdown")
CONFIG = "config.toml"


def _export(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.rebuild.home import chosen_spaces, connected

    if options.all and (context.named or options.format != "archive"):
        raise Invalid("--all writes an archive of every space into a folder; leave --space and --format out")
    if options.file == "-" and (options.format == "archive" or context.json):
        raise Invalid("only jsonl and markdown go to standard output, and --json tells of a file")
    spaces = chosen_spaces(context.home, [] if options.all else [context.space])
    if options.all:
        from lamina.store.files import translated_os

        with translated_os(Path(options.file)):
            Path(options.file).mkdir(parents=True, exist_ok=True)

    async def run() -> None:
        async with connected(context.home) as bus:
            if options.all:
                await _all(context, bus, spaces, Path(options.file))
            elif options.format == "archive":
                _say(context, await _archived(context, bus, spaces[0], Path(options.file)))
            else:
                await _written(context, bus, spaces[0], options)

    asyncio.run(run())
    return DONE


async def _archived(context: Context, bus: Bus, space: str, target: Path) -> Exported:
    from lamina.export.archive import export

    return await export(context.home, bus, space, target)


async def _all(context: Context, bus: Bus, spaces: list[str], folder: Path) -> None:
    """A backup of the home: an archive a space, and the configuration."""
    from lamina.store.files import write_atomic

    for space in spaces:
        _say(context, await _archived(context, bus, space, folder / f"{space}.tar"))
    if context.home.config.exists():
        write_atomic(folder / CONFIG, context.home.config.read_bytes())


async def _written(context: Context, bus: Bus, space: str, options: argparse.Namespace) -> None:
    from lamina.export.text import jsonl, markdown, write

    root = context.home.spaces / space
    parts = jsonl(bus, root) if options.format == "jsonl" else markdown(bus, root, context.space)
    if options.file == "-":
        async for part in parts:
            context.out.write(part)
        return
    count, size = await write(parts, Path(options.file))
    _say(
        context,
        Exported(
            space=context.space, file=options.file, format=options.format, events=count, blobs=0, size_bytes=size
        ),
    )


def _say(context: Context, done: Exported) -> None:
    if context.json:
        context.document(done)
    else:
        context.line(f"{done.space!a}: {done.events:,} events, {done.blobs:,} blobs in {done.file}")


def _restore(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.export.restore import restore as restored
    from lamina.rebuild.home import connected

    path = Path(options.file)
    archives = sorted(path.glob("*.tar")) if path.is_dir() else [path]
    if not archives:
        raise Invalid(f"{path} holds no archives; `lamina export --all {path}` writes them")
    if context.named and len(archives) > 1:
        raise Invalid("several archives cannot become one space; leave --space out, or name one archive")

    async def run() -> None:
        context.home.prepare()
        async with connected(context.home) as bus:
            for archive in archives:
                done = await restored(context.home, bus, archive, context.space if context.named else None)
                if context.json:
                    context.document(done)
                    continue
                left = f", {done.forgotten:,} forgotten" if done.forgotten else ""
                of = f"{done.published:,} of {done.events:,} events restored"
                context.line(f"{done.space!a}: {of}, {done.known:,} known{left}")

    asyncio.run(run())
    return DONE


def _export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what to write; with --all a folder; - is standard output")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="archive",
        help="archive: everything, to be restored (default); jsonl: the events; markdown: what was said",
    )
    parser.add_argument("--all", action="store_true", help="a backup: every space of the home, and its configuration")


def _restore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an archive, or a folder that `export --all` wrote")


export = Command(
    name="export",
    help="write a space into one portable file",
    description="One file with everything a space is made of: events, blobs, and the files that people read, with "
    "checksums. The space may be in use meanwhile.",
    run=_export,
    configure=_export_options,
    examples=(
        "lamina export alice.tar --space alice",
        "lamina export backup/ --all                          # the whole home, while it runs",
        "lamina export - --format markdown --space alice | less",
    ),
    outputs={"export": Exported},
)
restore = Command(
    name="restore",
    help="bring an exported space back",
    description="Everything is checked before anything is written: an archive that is cut, changed or not ours is "
    "refused. Restoring twice changes nothing, and what was forgotten stays forgotten. With --space it goes into "
    "a space of that name; ids stay as they are, so that stubs and citations still lead home.",
    run=_restore,
    configure=_restore_options,
    examples=(
        "lamina restore alice.tar",
        "lamina restore alice.tar --space alice-copy",
        "lamina restore backup/",
    ),
    outputs={"restore": Restored},
)
