"""The reading verbs: recall, show, why."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lamina import times
from lamina.cli.command import DONE, FAILED, Command, Context
from lamina.client import Memory
from lamina.records import Hits, Where
from lamina.requests import SessionPage, Sessions, TurnPage, Turns

R = TypeVar("R")


def _with_memory(context: Context, work: Callable[[Memory], Awaitable[R]]) -> R:
    async def run() -> R:
        async with Memory.open(space=context.space, home=context.home.path) as memory:
            return await work(memory)

    return asyncio.run(run())


def _recall(context: Context, options: argparse.Namespace) -> int:
    where = Where(
        sessions=tuple(options.session or ()),
        since=times.parse(options.since) if options.since else None,
        until=times.parse(options.until) if options.until else None,
    )
    hits = _with_memory(
        context,
        lambda memory: memory.recall(
            options.query,
            limit=options.limit,
            budget_tokens=options.budget_tokens,
            layers=options.layers.split(",") if options.layers else None,
            where=where,
            deadline_s=options.deadline,
        ),
    )
    if context.json:
        context.document(hits)
    else:
        _print_hits(context, hits)
    return FAILED if hits.status == "unavailable" else DONE


def _print_hits(context: Context, hits: Hits) -> None:
    for item in hits.items:
        who = item.name or item.role
        context.line(f"{item.time[:16].replace('T', ' ')}  {who}  ({item.layer}, {item.session}, {item.score:.2f})")
        for line in item.text.strip().splitlines():
            context.line(f"    {printable(line)}")
    if hits.status == "none":
        context.line("nothing found")
    for part in hits.degraded:
        context.note(f"lamina: {part.part}: {part.why}; {part.remedy}")


def printable(line: str) -> str:
    """A line that cannot steer the terminal it is shown on."""
    return "".join(c if c.isprintable() or c == "\t" else "�" for c in line)


def _recall_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="what to look for, in any language")
    parser.add_argument("--limit", type=int, default=8, metavar="N", help="at most so many items (default 8)")
    parser.add_argument("--budget-tokens", type=int, default=1500, metavar="N", help="and so many tokens (1500)")
    parser.add_argument("--layers", metavar="L0,L1", help="only these layers (default: all)")
    parser.add_argument("--session", action="append", metavar="NAME", help="only this session (may be repeated)")
    parser.add_argument("--since", metavar="TIME", help="not before this time (RFC 3339 with an offset)")
    parser.add_argument("--until", metavar="TIME", help="not after this time")
    parser.add_argument("--deadline", type=float, default=1.0, metavar="SECONDS", help="answer within (default 1)")


def _show(context: Context, options: argparse.Namespace) -> int:
    if options.what == "sessions":
        page = _with_memory(
            context, lambda memory: memory.ask("sessions", Sessions(limit=options.limit), SessionPage)
        )
        if context.json:
            context.document(page)
        else:
            for info in page.sessions:
                end = "  ended" if info.ended else ""
                context.line(
                    f"{info.last[:16].replace('T', ' ')}  {info.turns:6d} turns  {printable(info.session)}{end}"
                )
        return DONE
    request = Turns(session=options.session, limit=options.limit, newest=True)
    turns = _with_memory(context, lambda memory: memory.ask("turns", request, TurnPage))
    if context.json:
        for turn in turns.turns:
            context.document(turn)
        return DONE
    for turn in turns.turns:
        context.line(f"{turn.time[:16].replace('T', ' ')}  {turn.name or turn.role}  [{printable(turn.session)}]")
        for line in turn.text.strip().splitlines():
            context.line(f"    {printable(line)}")
    if turns.more:
        context.note(f"only the last {options.limit} are shown; --limit shows more")
    return DONE


def _show_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("log", "sessions"), help="log: what was said; sessions: which there are")
    parser.add_argument("--session", metavar="NAME", help="only this session")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many, the last ones (50)")


def _why(context: Context, options: argparse.Namespace) -> int:
    links = _with_memory(context, lambda memory: memory.why(options.id))
    if context.json:
        context.document(links)
    for link in links if not context.json else ():
        context.line(f"{link.layer}  {link.id}  seq {link.seq}  {link.time}  [{printable(link.session)}]")
        for line in link.text.strip().splitlines():
            context.line(f"    {printable(line)}")
    if not links:
        context.note(f"lamina: nothing in space {context.space!r} has the id {options.id!r}")
        return FAILED
    return DONE


def _why_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a memory, or a turn_id or call_id of your own")


recall = Command(
    name="recall",
    help="find what was said",
    run=_recall,
    configure=_recall_options,
    examples=(
        'lamina recall "which database?"',
        'lamina recall "데이터베이스" --json',
        "lamina recall plan --session s1",
    ),
)
show = Command(
    name="show",
    help="look at the memory",
    run=_show,
    configure=_show_options,
    examples=("lamina show log", "lamina show log --session s1 --limit 20", "lamina show sessions --json"),
)
why = Command(
    name="why",
    help="where a memory comes from",
    run=_why,
    configure=_why_options,
    examples=("lamina why 01a22e78-d49f-70cc-a6c0-65c3a13e4394",),
)
