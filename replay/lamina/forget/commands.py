"""The verb `forget`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from lamina.cli.command import DONE, FAILED, Command, Context
from lamina.errors import Invalid
from lamina.records import Receipt
from lamina.requests import Forget

if TYPE_CHECKING:
    from datetime import datetime

    from lamina.forget.plan import Told

SHOWN = 20
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _run(context: Context, options: argparse.Namespace) -> int:
    from lamina.forget.chosen import check
    from lamina.forget.run import unfinished
    from lamina.rebuild.home import chosen_spaces

    if not (options.rest or options.expired):
        check(_request(options))
    (space,) = chosen_spaces(context.home, [context.space])
    if not options.rest and (space not in unfinished(context.home) or options.dry_run):
        found = _done(context, options, space, dry_run=True)
        if options.dry_run or not found.ids or not (options.yes or _agreed(context, found)):
            return _told(context, found)
    return _told(context, _done(context, options, space, dry_run=False))


def _done(context: Context, options: argparse.Namespace, space: str, *, dry_run: bool) -> Receipt:
    import asyncio
    import time

    from msgspec.structs import replace

    from lamina.config import load
    from lamina.forget.bar import shown
    from lamina.forget.run import expire, forget, rest
    from lamina.rebuild.home import connected

    async def run(told: Told) -> Receipt:
        home = context.home
        async with connected(home) as bus:
            if options.rest:
                return await rest(home, bus, space, told)
            if options.expired:
                policy, now_us = load(home.config).retention, time.time_ns() // 1000
                force = options.force or dry_run
                return await expire(home, bus, space, policy, told, now_us=now_us, dry_run=dry_run, force=force)
            return await forget(home, bus, space, replace(_request(options), dry_run=dry_run), told)

    with shown(context.err if context.err.isatty() else None) as told:
        return asyncio.run(run(told))


def _request(options: argparse.Namespace) -> Forget:
    between = options.between
    return Forget(
        events=tuple(options.event),
        turns=tuple(options.turn),
        nodes=tuple(options.node),
        sessions=tuple(options.session),
        between=(_time(between[0], "00:00:00"), _time(between[1], "23:59:59.999999")) if between else None,
        matches=tuple(options.match),
        entities=tuple(options.entity),
        all=options.all,
    )


def _time(text: str, of_a_day: str) -> datetime:
    """RFC 3339, or a day in this machine's zone."""
    from datetime import datetime

    from lamina.times import aware

    if not _DAY.fullmatch(text):
        return aware(text)
    try:
        return aware(datetime.fromisoformat(f"{text}T{of_a_day}").astimezone())
    except ValueError as error:
        raise Invalid(f"{text!r} is not a date of the calendar") from error


def _agreed(context: Context, found: Receipt) -> bool:
    """Does the person at the terminal want it? Where there is none, whoever wrote the command does."""
    import sys

    if context.json or not (sys.stdin.isatty() and context.err.isatty()):
        return True
    context.note(f"{_counted(found)} would be erased from {found.space!a} for good, with what was made of it alone.")
    context.err.write("Forget it? [y/N] ")
    context.err.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _counted(found: Receipt) -> str:
    said = ", ".join(f"{count:,} {kind}" for kind, count in found.said.items()) or "nothing that was said"
    derived = ", ".join(f"{count:,} {kind}" for kind, count in found.derived.items())
    return f"{said}, and of what was derived {derived}" if derived else said


def _told(context: Context, done: Receipt) -> int:
    if context.json:
        context.document(done)
    else:
        _say(context, done)
    return FAILED if done.found else DONE


def _say(context: Context, done: Receipt) -> None:
    if not done.ids and not done.messages:
        context.line(f"{done.space!a}: nothing of the kind is remembered; nothing was changed")
        return
    context.line(f"{done.space!a}: {_counted(done)} {'would be erased' if done.dry_run else 'erased'}")
    for id in done.ids[:SHOWN]:
        context.line(f"    {id}")
    if len(done.ids) > SHOWN:
        context.line(f"    and {len(done.ids) - SHOWN:,} more: --json names them")
    if done.dry_run:
        context.line("nothing was changed")
        return
    context.line(
        f"  {done.messages:,} messages of the log, {done.lines:,} lines, {done.blobs:,} blobs, {done.files:,} files, "
        f"{done.vectors:,} vectors; folded anew: {', '.join(done.views)}"
    )
    found = f"FOUND in {', '.join(done.found)}" if done.found else "found none"
    context.line(
        f"  looked for {done.looked_for:,} pieces of it in {done.in_messages:,} messages and "
        f"{done.in_files:,} files: {found}"
    )
    for one in done.unseen:
        context.line(f"  not looked at: {one}")


def _options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    for name, metavar, text in (
        ("event", "ID", "the event with this id, as recall, show and why name it"),
        ("turn", "ID", "turns and calls with this id of your own (`turn_id`, `call_id`)"),
        ("node", "NODE", "this tool result, by the name in its stub"),
        ("session", "NAME", "everything of this session"),
        ("match", "TEXT", "everything that contains this text, whatever its case"),
        ("entity", "NAME", "all that names this person or thing, and the sources of atoms that do"),
    ):
        what.add_argument(f"--{name}", metavar=metavar, action="append", default=[], help=text)
    what.add_argument(
        "--between",
        metavar=("FROM", "TO"),
        nargs=2,
        help="what happened from one time, or day, to another, both included",
    )
    what.add_argument("--all", action="store_true", help="everything in the space")
    what.add_argument(
        "--expired",
        action="store_true",
        help="what is older than [retention] keeps it; the daemon does so daily",
    )
    what.add_argument(
        "--rest",
        action="store_true",
        help="do the rest of what was interrupted, and erase what was published again under a forgotten id",
    )
    parser.add_argument("--dry-run", action="store_true", help="tell what would go, and change nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="of --expired: even if that is more than 80 %% of what was said",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask on a terminal")


forget = Command(
    name="forget",
    help="erase what was said, and all that was made of it, for good",
    description="Erase events from the log, the ledger, references, canvases, every view, index and vector cache, "
    "and outboxes. What was derived of them alone goes with them; what other sources say too is derived again. Their "
    "ids stay dead: no import, restore or rebuild brings them back. In the end pieces of the erased texts are looked "
    "for in every message and file; exit code 1 when one still stands somewhere. Interrupted, the daemon or the next "
    "`forget` does the rest. An option may be given several times. The receipt holds ids and counts, never a text.",
    run=_run,
    configure=_options,
    examples=(
        "lamina forget --session s1 --dry-run",
        "lamina forget --turn my-turn-17 --yes --json",
        'lamina forget --match "my old address"',
        'lamina forget --entity "김민수"',
        "lamina forget --between 2026-03-01 2026-03-31",
        "lamina forget --expired --dry-run        # what the policy under [retention] lets go",
    ),
    outputs={"forget": Receipt},
)
