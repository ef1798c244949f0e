"""The verb `dead`: list, retry, drop."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lamina.cli.command import DONE, FAILED, Command, Context
from lamina.cli.output import Column, one_line
from lamina.dead.records import Dead, Settled
from lamina.errors import Invalid

if TYPE_CHECKING:
    from lamina.rebuild.progress import Moved

REASON_CHARS = 70
ACTIONS = ("list", "retry", "drop")


def _run(context: Context, options: argparse.Namespace) -> int:
    from lamina.dead.parked import chosen, dead
    from lamina.rebuild.home import chosen_spaces

    found = list(dead(context.home, chosen_spaces(context.home, [context.space] if context.named else [])))
    if options.service:
        found = [one for one in found if one.service == options.service]
    if options.action == "list":
        if options.id or options.kind:
            found = chosen(found, ids=options.id, kind=options.kind, every=False)
        return _list(context, found)
    if options.action == "drop" and not (options.reason or "").strip():
        raise Invalid("dropping needs a reason, for whoever asks later: --reason TEXT")
    wanted = chosen(found, ids=options.id, kind=options.kind, every=options.all)
    settled = _settled(context, options, wanted) if wanted else []
    for one in settled:
        if context.json:
            context.document(one)
        else:
            why = f": {one.error}" if one.error else ""
            context.line(f"{one.space!a} {one.service} {one.id}: {one.outcome}{why}")
    if not wanted and not context.json:
        context.line("nothing is parked")
    return FAILED if any(one.outcome == "parked" for one in settled) else DONE


def _settled(context: Context, options: argparse.Namespace, wanted: Sequence[Dead]) -> list[Settled]:
    import asyncio

    from lamina.dead.settle import drop, retry
    from lamina.rebuild.bar import shown
    from lamina.rebuild.home import connected

    async def run(moved: Moved) -> list[Settled]:
        async with connected(context.home) as bus:
            if options.action == "drop":
                return await drop(context.home, bus, wanted, options.reason)
            return await retry(context.home, bus, wanted, moved)

    with shown(context.err if context.err.isatty() else None) as moved:
        return asyncio.run(run(moved))


def _list(context: Context, found: Sequence[Dead]) -> int:
    if context.json:
        for one in found:
            context.document(one)
    elif found:
        columns = [Column(title) for title in ("space", "service", "kind", "id", "reason")]
        rows = [(x.space, x.service, x.kind, x.id, one_line(x.error, REASON_CHARS)) for x in found]
        context.printer.table(columns, rows)
    else:
        context.line("nothing is parked")
    return DONE


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="list: what is parked, and why; retry: fold or decide it again; drop: let it rest, with a reason",
    )
    parser.add_argument("id", metavar="ID", nargs="*", help="only these, by the id that `list` shows")
    parser.add_argument("--kind", metavar="TYPE", help="all of this type, such as turn.recorded or step.failed")
    parser.add_argument("--service", metavar="NAME", help="only what this service parked")
    parser.add_argument("--all", action="store_true", help="of retry and drop: everything that is parked")
    parser.add_argument("--reason", metavar="TEXT", help="of drop: why it may rest")


dead = Command(
    name="dead",
    help="events that a service could not take",
    description="An event that a service cannot take is parked with the reason, and the rest flows on. Retry folds "
    "the view anew beside the one in use (order matters), and makes decisions that were given up due again. Drop "
    "says in the log that it may rest: no rebuild parks it again, and the log keeps it. Without --space every "
    "space is looked at; exit code 1 when something stays parked.",
    run=_run,
    configure=_options,
    examples=(
        "lamina dead list",
        "lamina dead retry --all",
        "lamina dead retry --kind step.failed --service atoms",
        'lamina dead drop 01a22e78-d49f-70cc-a6c0-65c3a13e4394 --reason "a test message"',
    ),
    outputs={"dead list": Dead, "dead retry": Settled, "dead drop": Settled},
)
