"""The verb `replay`: rebuild, and what else the log makes possible."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from lamina.cli.command import DONE, FAILED, Command, Context
from lamina.errors import Invalid
from lamina.rebuild.progress import Mended, Rebuilt
from lamina.replay import shadows
from lamina.replay.records import TrimmedSpace
from lamina.verify.records import Verified

NICE = 10
"""Whoever recalls or publishes meanwhile comes first; where nobody does, it costs nothing."""
Action = Callable[[Context, argparse.Namespace], int]


def _rebuild(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.rebuild.bar import shown
    from lamina.rebuild.home import chosen_spaces, chosen_views, connected, rebuild

    spaces = chosen_spaces(context.home, [context.space] if context.named else [])
    views = chosen_views(options.view)

    async def run() -> None:
        async with connected(context.home) as bus:
            with shown(context.err if context.err.isatty() else None) as moved:
                await rebuild(
                    context.home, bus, views=views, spaces=spaces, moved=moved, done=lambda one: _say(context, one)
                )

    if spaces:
        os.nice(NICE)
        asyncio.run(run())
    elif not context.json:
        context.line("there is no space yet, and nothing to rebuild")
    return DONE


def _verify(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.rebuild.home import chosen_spaces, connected
    from lamina.verify.run import verify

    spaces = chosen_spaces(context.home, [context.space] if context.named else [])

    async def run() -> Verified:
        async with connected(context.home) as bus:
            return await verify(context.home, bus, spaces)

    if spaces:
        os.nice(NICE)
    found = asyncio.run(run()) if spaces else Verified(findings=(), spaces=0, events=0, seconds=0.0)
    if context.json:
        context.document(found)
    else:
        for one in found.findings:
            context.line(f"{one.space!a} {one.what}: {one.where}: {one.detail}")
            if one.lost:
                context.line("    this is gone for good")
            if one.heal:
                context.line(f"    heal: {one.heal}")
        many = f"{len(found.findings):,} findings" if found.findings else "nothing differs"
        context.line(f"{found.spaces:,} spaces, {found.events:,} events in {found.seconds:.1f} s: {many}")
    return FAILED if found.findings else DONE


def _say(context: Context, one: Rebuilt | Mended) -> None:
    if context.json:
        context.document(one)
        return
    if isinstance(one, Mended):
        kept = f"; {one.unreadable:,} could not be read, the old ledger is {one.kept}" if one.unreadable else ""
        context.line(f"{one.space!a} ledger: {one.lines:,} lines, {one.files:,} files changed{kept}")
        return
    parked = f", {one.dead:,} parked: `lamina dead list`" if one.dead else ""
    context.line(
        f"{one.space!a} {one.service}: {one.events:,} events in {one.seconds:.1f} s, {one.rate:,.0f} a second; "
        f"at {one.seq} of the log{parked}"
    )


def _trim(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.config import keep_of, load
    from lamina.rebuild.home import chosen_spaces, connected
    from lamina.runtime.registry import fold_services
    from lamina.runtime.trim import Trimmed, cut_at, trim

    spaces = chosen_spaces(context.home, [context.space] if context.named else [])
    settings = load(context.home.config)
    text = options.keep or settings.bus.keep
    if not text:
        raise Invalid("how much of the log is to stay? --keep '2 GiB', --keep '30 d', or `keep` under [bus]")
    keep = keep_of(text)
    services = settings.daemon.services or tuple(fold_services())
    folding = [name for name in services if name in fold_services()]

    async def run() -> list[Trimmed]:
        async with connected(context.home) as bus:
            return await trim(context.home, bus, spaces, folding, await cut_at(bus, keep))

    for one in asyncio.run(run()) if spaces else ():
        if context.json:
            context.document(TrimmedSpace(space=one.space, seq=one.seq, removed=one.removed, why=one.why))
        else:
            why = f"; {one.why}" if one.why else ""
            context.line(f"{one.space!a}: {one.removed:,} messages went from the log, up to {one.seq}{why}")
    return DONE


ACTIONS: dict[str, Action] = {"rebuild": _rebuild, "verify": _verify, "trim": _trim, **shadows.ACTIONS}


def _run(context: Context, options: argparse.Namespace) -> int:
    if options.action in shadows.ACTIONS and len(options.view) != 1:
        raise Invalid(f"`lamina replay {options.action} NAME`: a shadow has one name, which you choose")
    if options.set and options.action != "rederive":
        raise Invalid(f"--set is of rederive; `lamina replay {options.action}` takes no settings")
    if options.view and options.action not in ("rebuild", *shadows.ACTIONS):
        raise Invalid(f"`lamina replay {options.action}` takes no view; it looks at all of them")
    return ACTIONS[options.action](context, options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=tuple(ACTIONS),
        help="rebuild: make views again from the log; verify: hold log, ledger, blobs, views and vectors against one "
        "another; trim: let events go from the log that the ledger is verified to hold",
    )
    parser.add_argument(
        "--keep", metavar="HOW-MUCH", help="of trim: '2 GiB' or '30 d' stay in the log (default: `keep` under [bus])"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="of rederive: a setting that differs, such as llm.model=NAME (may be repeated)",
    )
    parser.add_argument(
        "view",
        metavar="VIEW|NAME",
        nargs="*",
        help="of rebuild: only these views, or `ledger` (default: all views); else the name of what is derived anew",
    )


replay = Command(
    name="replay",
    help="make views again from the log; verify what stands on disk",
    description="Rebuild: every view is made again beside the one in use and takes its place in one step, while "
    "others read and write on. No model is ever asked; interrupted, the same command goes on where it stopped.\n\n"
    "Verify: what differs, and which command heals it; exit code 1 when something does. It changes nothing.\n\n"
    "Trim: the log keeps a bounded tail; what goes is first compared, byte for byte, with the ledger, which rebuild "
    "and verify then read.\n\n"
    "Rederive: what was said is read again by other means (another model, today's rules), beside what stands, and "
    "nothing of that changes; interrupted, or after more was said, the same command goes on. Diff compares, adopt "
    "lets it hold instead (and can be undone decision by decision), drop removes it.\n\n"
    "Without --space every space is meant.",
    run=_run,
    configure=_options,
    examples=(
        "lamina replay rebuild                    # everything, in every space",
        "lamina replay rebuild journal --space alice",
        "lamina replay rebuild ledger             # lines that were lost or damaged, from the log",
        "lamina replay verify --json",
        "lamina replay trim --keep '2 GiB'",
        "lamina replay rederive second --space alice --set llm.model=qwen3",
        "lamina replay diff second --space alice   # gained, lost, changed, with the words they came from",
        "lamina replay adopt second --space alice  # or: drop",
    ),
    outputs={
        "replay rebuild": Rebuilt,
        "replay rebuild ledger": Mended,
        "replay verify": Verified,
        "replay trim": TrimmedSpace,
        **shadows.OUTPUTS,
    },
)
