"""The reading verbs: recall, show, why."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lamina.cli.command import DONE, FAILED, Command, Context, positive
from lamina.cli.conversation import moment_text
from lamina.cli.output import Column, Printer, one_line
from lamina.errors import Invalid
from lamina.query import shown_atoms, shown_persona
from lamina.query.asking import as_of, as_of_option, moment, with_memory, with_past
from lamina.query.shows import SHOWS, Show
from lamina.records import LAYERS, Hits, Item, Link, Part, Where

RECALLED = ("journal", "atoms", "scenarios", "persona", "vectors")
PROMPTED = (*RECALLED, "offload")
WHY = ("journal", "atoms", "scenarios", "persona")
LINES = 12
EXPLAINED_CHARS = 60


def _recall(context: Context, options: argparse.Namespace) -> int:
    where = Where(
        sessions=tuple(options.session or ()),
        since=moment(options.since, end=False) if options.since else None,
        until=moment(options.until, end=True) if options.until else None,
    )
    then = as_of(options)
    hits = with_past(
        context,
        then,
        RECALLED,
        lambda memory: memory.recall(
            options.query,
            limit=options.limit,
            budget_tokens=options.budget_tokens,
            layers=options.layers.split(",") if options.layers else None,
            where=where,
            deadline_s=options.deadline,
            as_of=then,
        ),
    )
    if context.json:
        context.document(hits)
    else:
        _print_hits(context, hits, explain=options.explain)
    return FAILED if hits.status == "unavailable" else DONE


def _print_hits(context: Context, hits: Hits, *, explain: bool) -> None:
    printer = context.printer
    if explain and hits.items:
        _print_parts(printer, hits.items)
    for index, item in enumerate(() if explain else hits.items):
        if index:
            printer.line()
        _print_item(context, item)
    if hits.status == "none":
        printer.line(f"nothing found in space {context.space!r}")
    if hits.persona:  # it is given with every answer, and is seldom what a person at a terminal has asked for
        lines = sum(line.startswith("- ") for line in hits.persona.splitlines())
        printer.line(f"\nalways known beside it: {lines} line{'s' * (lines != 1)}, `lamina show persona`", "dim")
    for part in hits.degraded:
        context.note(f"lamina: {part.part}: {part.why}; {part.remedy}")


def _print_parts(printer: Printer, items: Sequence[Item]) -> None:
    """A row an item: the parts that make its score, the columns those that any of them has."""
    names = dict.fromkeys(name for item in items for name, value in item.parts.items() if value)
    columns = [Column("score", right=True), *(Column(name, right=True) for name in names), Column("text")]
    rows = [
        (
            f"{item.score:.3f}",
            *(f"{item.parts[name]:.3f}" if item.parts.get(name) else "" for name in names),
            one_line(f"{item.name or item.role}: {item.text}", EXPLAINED_CHARS),
        )
        for item in items
    ]
    printer.table(columns, rows)


def _print_item(context: Context, item: Item) -> None:
    printer = context.printer
    printer.parts(
        (moment_text(item.time), "dim"),
        ("  ", ""),
        (one_line(item.name or item.role or item.layer), "bold"),
        (f"  {item.layer} · {one_line(item.session) or 'no session'} · {item.score:.2f}", "dim"),
    )
    left = printer.block(item.text, most=LINES)
    if item.note:
        printer.line(f"    {one_line(item.note, 300)}", "yellow")
    if left:
        printer.line(f"    … {left} more lines: `lamina why {item.id}`", "dim")


def _recall_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="what to look for, in any language")
    parser.add_argument("--limit", type=int, default=8, metavar="N", help="at most so many items (default: 8)")
    parser.add_argument(
        "--budget-tokens", type=int, default=1500, metavar="N", help="at most so many tokens (default: 1500)"
    )
    parser.add_argument("--layers", metavar="L0,L1", help=f"only these layers, of {','.join(LAYERS)} (default: all)")
    parser.add_argument("--session", action="append", metavar="NAME", help="only this session (may be repeated)")
    parser.add_argument("--since", metavar="TIME", help="not before this day or RFC 3339 time with an offset")
    parser.add_argument("--until", metavar="TIME", help="not after this day or time")
    parser.add_argument(
        "--deadline",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="answer within, with what there is (default: 1)",
    )
    as_of_option(parser)
    parser.add_argument("--explain", action="store_true", help="a table of the parts that make each score")


def _show(context: Context, options: argparse.Namespace) -> int:
    context.home.require_folder()  # a view or a file that is not there is no error below
    show, then = SHOWS[options.what], as_of(options)
    if then is not None and not show.service:
        raise Invalid(f"`show {options.what}` tells of now alone, whatever --as-of says")
    return show.run(context, options, lambda context, work: with_past(context, then, _views(show), work))


def _views(show: Show) -> tuple[str, ...]:
    return PROMPTED if show.service == "prompt" else (show.service,)


def _show_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", choices=tuple(SHOWS), help="; ".join(f"{name}: {show.help}" for name, show in SHOWS.items())
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="of scenarios: one, by its name or id")
    parser.add_argument("--session", metavar="NAME", help="only this session")
    parser.add_argument("--turn", type=positive, metavar="N", help="of context: what the N-th cut made smaller")
    parser.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="at most so many, the last ones (default: 50)"
    )
    parser.add_argument(
        "--lines",
        type=int,
        default=20,
        metavar="N",
        help="cut longer texts after so many lines; 0: never (default: 20)",
    )
    as_of_option(parser)
    shown_atoms.options(parser)
    shown_persona.options(parser)


def _read(context: Context, options: argparse.Namespace) -> int:
    part = with_memory(
        context,
        lambda memory: memory.read(
            options.node,
            query=options.query,
            lines=options.lines,
            symbol=options.symbol,
            max_tokens=options.max_tokens,
        ),
    )
    if context.json:
        context.document(part)
        return DONE
    for line in part.text.split("\n"):
        context.printer.line(line)
    if part.omitted:
        context.note(f"lamina: {part.omitted}")
    return DONE


def _read_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="the name of a tool result, from its stub or `show log`")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--query", metavar="WORDS", help="its best passages for these words")
    way.add_argument("--lines", metavar="FROM-TO", help="these lines: 40, 10-40 or 10-")
    way.add_argument("--symbol", metavar="NAME", help="a whole definition, such as Foo.bar")
    parser.add_argument(
        "--max-tokens", type=int, default=1600, metavar="N", help="at most so many tokens (default: 1600)"
    )


def _why(context: Context, options: argparse.Namespace) -> int:
    then = as_of(options)
    links = with_past(context, then, WHY, lambda memory: memory.why(options.id, as_of=then))
    if context.json:
        context.document(links)
    for index, link in enumerate(links if not context.json else ()):
        _print_link(context, link, first=index == 0)
    if not links:
        context.note(
            f"lamina: nothing in space {context.space!r} has the id {options.id!r}; `recall --json` gives ids"
        )
        return FAILED
    return DONE


def _print_link(context: Context, link: Link, *, first: bool) -> None:
    printer = context.printer
    if not first:
        printer.line("  ↓ comes from", "dim")
    place = f"event {link.seq} of the log · {one_line(link.session) or 'no session'}" if link.seq is not None else ""
    printer.parts((link.layer, "bold"), (f"  {moment_text(link.time)}  {link.id}  {place}".rstrip(), "dim"))
    printer.block(link.text)
    if link.note:
        printer.line(f"    {one_line(link.note, 300)}", "yellow")
    if link.by:
        printer.line(f"    decided by {link.by}; `lamina undo` takes that back", "dim")
    if link.made:
        printer.line(f"    made of it: {', '.join(link.made)}", "dim")


def _why_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="the id of a memory, or a turn_id or call_id of your own")
    as_of_option(parser)


recall = Command(
    name="recall",
    help="find what is remembered about something",
    description="Search the memory of a space, in any language. The answer is one of three: found, none, or "
    "unavailable (exit code 1), and what could not be looked at is named.",
    run=_recall,
    configure=_recall_options,
    examples=(
        'lamina recall "which database did we choose?"',
        'lamina recall "데이터베이스" --limit 3 --json',
        "lamina recall plan --session s1 --since 2026-11-01",
        'lamina recall "the plan for Busan" --explain',
        'lamina recall "what did we decide last week?"          # what was said then comes first',
        'lamina recall "where do I live?" --as-of 2026-03-01   # what was known then',
    ),
    outputs={"recall": Hits},
)
show = Command(
    name="show",
    help="look at the memory: its log, atoms, sessions, spaces",
    description="Read what is remembered, as it was said. Tool results are folded; nothing is changed.",
    run=_show,
    configure=_show_options,
    examples=(
        "lamina show log                          # the last 50 turns, like a conversation",
        "lamina show log --session s1 --lines 0   # one session, nothing cut",
        "lamina show atoms --type instruction      # what was derived, newest first",
        "lamina show atoms --query database --history",
        "lamina show atoms --as-of 1200            # as they stood after event 1200 of the log",
        "lamina show scenarios                    # the situations, the hottest first",
        "lamina show persona                      # who somebody is, and how they want things done",
        "lamina show persona --diff --as-of 1200",
        "lamina show prompt --session s1          # what is put before a model",
        "lamina show sessions --json",
        "lamina show ledger                       # tokens saved by offloading",
        "lamina show context --session s1 --turn 2",
        "lamina show spaces                       # every memory of this home",
    ),
    outputs={f"show {name}": show.output for name, show in SHOWS.items()},
)
read = Command(
    name="read",
    help="read a tool result, or a part of it, exactly",
    description="A tool result as it was returned, with line numbers: from its start, or by --query, --lines or "
    "--symbol. What is left out is said on stderr, with the way to it.",
    run=_read,
    configure=_read_options,
    examples=(
        "lamina read nt5qvas6vs0x",
        'lamina read nt5qvas6vs0x --query "assertion failed"',
        "lamina read nwpet87xd433 --symbol import_till --max-tokens 4000",
        "lamina read nwpet87xd433 --lines 10-40 --json",
    ),
    outputs={"read": Part},
)
why = Command(
    name="why",
    help="where a memory comes from",
    description="The chain from a memory down to the events it was made of.",
    run=_why,
    configure=_why_options,
    examples=("lamina why 01a22e78-d49f-70cc-a6c0-65c3a13e4394", "lamina why my-turn-17 --json"),
    outputs={"why": tuple[Link, ...]},
)
