"""The verb `replay`: rebuild, and what else the log makes possible."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from lamina.cli.command import DONE, Command, Context
from lamina.errors import Invalid
from lamina.rebuild.progress import Rebuilt

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

    asyncio.run(run())
    if not spaces and not context.json:
        context.line("there is no space yet, and nothing to rebuild")
    return DONE


def _say(context: Context, one: Rebuilt) -> None:
    if context.json:
        context.document(one)
        return
    parked = f", {one.dead:,} parked: `lamina dead list`" if one.dead else ""
    context.line(
        f"{one.space!a} {one.service}: {one.events:,} events in {one.seconds:.1f} s, {one.rate:,.0f} a second; "
        f"at {one.seq} of the log{parked}"
    )


ACTIONS: dict[str, Action] = {"rebuild": _rebuild}


def _run(context: Context, options: argparse.Namespace) -> int:
    if options.view and options.action != "rebuild":
        raise Invalid(f"`lamina replay {options.action}` takes no view; it looks at all of them")
    return ACTIONS[options.action](context, options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=tuple(ACTIONS), help="rebuild: make views again from the log")
    parser.add_argument("view", metavar="VIEW", nargs="*", help="of rebuild: only these views (default: all)")


replay = Command(
    name="replay",
    help="make views again from the log",
    description="What the log makes possible: every view is made again beside the one in use and takes its place in "
    "one step, while others read and write on. No model is ever asked. Without --space it is done for every space; "
    "interrupted, the same command goes on where it stopped.",
    run=_run,
    configure=_options,
    examples=(
        "lamina replay rebuild                    # everything, in every space",
        "lamina replay rebuild journal --space alice",
        "lamina replay rebuild --json",
    ),
    outputs={"replay rebuild": Rebuilt},
)
