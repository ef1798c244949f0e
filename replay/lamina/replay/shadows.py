"""`lamina replay rederive|diff|adopt|drop`: second thoughts, from the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from lamina.cli.command import DONE, Context
from lamina.cli.output import Column, one_line
from lamina.rederive.records import Adopted, AtomChange, Difference, Dropped, Rederived

if TYPE_CHECKING:
    from lamina.bus.nats import NatsBus

T = TypeVar("T")
NICE = 10
TEXT_CHARS = 90
MOST_SHOWN = 40


def _rederive(context: Context, options: argparse.Namespace) -> int:
    from lamina.rederive.run import Progress, rederive, settings

    changed = settings(options.set)
    space, name = _chosen(context, options)

    def moved(progress: Progress) -> None:
        if context.err.isatty():
            context.err.write(f"\r{progress.made:,} decisions made, {progress.waiting:,} turns wait   ")
            context.err.flush()

    os.nice(NICE)
    found = _on_log(context, lambda bus: rederive(context.home, bus, space, name, changed, moved=moved))
    if context.err.isatty():
        context.err.write("\n")
    if context.json:
        context.document(found)
        return DONE
    context.line(
        f"{name}: {found.atoms:,} atoms by {found.decisions:,} decisions ({found.made:,} of them now), "
        f"{found.tokens:,} tokens, {found.seconds:.1f} s; up to event {found.seq} of the log"
    )
    if found.waiting:
        context.line(f"{found.waiting:,} turns wait for the end of their window")
    context.line(f"nothing that stands has changed; see `lamina replay diff {name}`")
    return DONE


def _diff(context: Context, options: argparse.Namespace) -> int:
    from lamina.rederive.diff import difference

    space, name = _chosen(context, options)
    found = _on_log(context, lambda bus: difference(context.home, bus, space, name))
    if context.json:
        context.document(found)
        return DONE
    context.line(f"{found.same:,} the same, {found.gained:,} gained, {found.lost:,} lost, {found.changed:,} changed")
    for one in found.atoms[:MOST_SHOWN]:
        _print_change(context, one)
    if len(found.atoms) > MOST_SHOWN:
        context.note(f"{MOST_SHOWN} of {len(found.atoms):,} are shown; --json has all")
    for query in found.queries[:MOST_SHOWN]:
        context.line(f"? {one_line(query.query, TEXT_CHARS)}  ({query.overlap:.0%} alike)")
        for sign, texts in (("-", query.only_before), ("+", query.only_after)):
            for text in texts:
                context.line(f"    {sign} {one_line(text, TEXT_CHARS)}")
    context.line(f"{found.asked:,} recorded questions, {len(found.queries):,} answered otherwise")
    columns = (Column(""), Column("decisions", right=True), Column("tokens", right=True), Column("by"))
    rows = [
        (title, f"{cost.decisions:,}", f"{cost.tokens:,}", ", ".join(cost.by))
        for title, cost in (("before", found.before), ("after", found.after))
    ]
    context.printer.table(columns, rows)
    if found.behind:
        context.line(f"{found.behind:,} events came since: `lamina replay rederive {name}` takes them in")
    return DONE


def _print_change(context: Context, one: AtomChange) -> None:
    signs = {"lost": "-", "gained": "+", "changed": "~"}
    context.line(f"{signs[one.what]} {one.type}: {one_line(one.before or one.after, TEXT_CHARS)}")
    if one.what == "changed":
        context.line(f"  -> {one_line(one.after, TEXT_CHARS)}")
    for source in one.evidence:
        context.line(f"    said: {one_line(source.text, TEXT_CHARS)}  ({source.id})")


def _adopt(context: Context, options: argparse.Namespace) -> int:
    from lamina.rederive.adopt import adopt

    space, name = _chosen(context, options)
    found = _on_log(context, lambda bus: adopt(context.home, bus, space, name))
    if context.json:
        context.document(found)
    else:
        context.line(
            f"{name} holds now: {found.undone:,} extractions undone, {found.decisions:,} decisions in their place, "
            f"{found.atoms:,} atoms stand; event {found.event}"
        )
    return DONE


def _drop(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina.rederive.shadow import Shadow

    space, name = _chosen(context, options)
    asyncio.run(Shadow(context.home, space, name).drop())
    if context.json:
        context.document(Dropped(space=context.space, name=name))
    else:
        context.line(f"{name} is gone; nothing that stands has changed")
    return DONE


def _chosen(context: Context, options: argparse.Namespace) -> tuple[str, str]:
    from lamina.rebuild.home import chosen_spaces

    (space,) = chosen_spaces(context.home, [context.space])
    return space, options.view[0]


def _on_log(context: Context, work: Callable[[NatsBus], Awaitable[T]]) -> T:
    import asyncio

    from lamina.rebuild.home import connected

    async def run() -> T:
        async with connected(context.home) as bus:
            return await work(bus)

    return asyncio.run(run())


ACTIONS = {"rederive": _rederive, "diff": _diff, "adopt": _adopt, "drop": _drop}
OUTPUTS: dict[str, Any] = {
    "replay rederive": Rederived,
    "replay diff": Difference,
    "replay adopt": Adopted,
    "replay drop": Dropped,
}
