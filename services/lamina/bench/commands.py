"""The verb `bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lamina.bench.records import Benched, Missed, Way
from lamina.cli.command import DONE, FAILED, Command, Context, positive
from lamina.cli.output import Column, one_line
from lamina.errors import Invalid
from lamina.query.asking import with_memory

if TYPE_CHECKING:
    from lamina.bench.questions import Question
    from lamina.client import Memory
    from lamina.requests import Turn

WAYS: tuple[tuple[str, ...], ...] = (("l0",), ("l0", "l1", "l2"))
MOST_TURNS = 50_000
PAGE = 1_000
MOST_MISSED = 20
SHOWN_MISSED = 3


def _run(context: Context, options: argparse.Namespace) -> int:
    from lamina.bench.questions import of_file

    questions = of_file(Path(options.questions)) if options.questions else None
    found: Benched = with_memory(context, lambda memory: _benched(context, options, memory, questions))
    if context.json:
        context.document(found)
    else:
        _print(context, found)
    return FAILED if all(way.unavailable == found.questions for way in found.ways) else DONE


async def _benched(
    context: Context, options: argparse.Namespace, memory: Memory, given: Sequence[Question] | None
) -> Benched:
    from lamina.bench.measure import ask, summed
    from lamina.bench.questions import of_turns

    with _progress(context) as tell:
        turns = [] if given is not None else await _turns(memory, tell)
        questions = list(given) if given is not None else of_turns(turns, options.count)
        if not questions:
            raise Invalid(
                f"space {context.space!r} has no turn that a question could be made of; import or publish some, or "
                "give --questions FILE"
            )
        ways: list[Way] = []
        missed: list[Missed] = []
        for layers in WAYS:
            answers = []
            for number, one in enumerate(questions, 1):
                tell(f"asking of {'+'.join(layers)}", number, len(questions))
                answers.append(await ask(memory, one, layers, options.limit))
                if layers == WAYS[-1] and not answers[-1].place and len(missed) < MOST_MISSED:
                    missed.append(Missed(question=one.question, evidence=one.evidence))
            ways.append(summed(layers, answers))
    return Benched(
        space=context.space,
        source=options.questions or "log",
        turns=len(turns),
        questions=len(questions),
        limit=options.limit,
        ways=tuple(ways),
        missed=tuple(missed),
    )


async def _turns(memory: Memory, tell: Callable[[str, int, int], None]) -> list[Turn]:
    """The first turns of the log, as far as questions are made of them."""
    from lamina.requests import TurnPage, Turns

    turns: list[Turn] = []
    more, after = True, 0
    while more and len(turns) < MOST_TURNS:
        page = await memory.ask("turns", Turns(after=after, limit=PAGE), TurnPage)
        turns += [turn for turn in page.turns if turn.type == "turn.recorded"]
        more, after = page.more, page.turns[-1].seq if page.turns else after
        tell("reading the log", len(turns), 0)
    return turns


@contextmanager
def _progress(context: Context) -> Iterator[Callable[[str, int, int], None]]:
    """What is being done, on a terminal; nothing elsewhere."""
    if not context.err.isatty():
        yield lambda what, at, of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=context.err), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, at, of: bar.update(task, description=what, completed=at, total=of or None)


def _print(context: Context, found: Benched) -> None:
    made = f"of {found.turns:,} turns of the log" if found.source == "log" else f"of {found.source}"
    context.line(f"{found.questions} questions {made}, at most {found.limit} items each")
    columns = [Column("layers"), *(Column(name, right=True) for name in ("first", "in 5", "in 10", "MRR"))]
    columns += [Column("p50", right=True), Column("p99", right=True), Column("not answered in full")]
    context.printer.table(columns, [_row(way) for way in found.ways])
    for one in found.missed[:SHOWN_MISSED]:
        context.line(f"missed: {one_line(one.question, 80)} ({one_line(one.evidence[0])})")
    if found.source == "log":
        context.note(
            "lamina: a question is half of the words of a turn, so this tells whether turns are found by their "
            "words; for questions of your own give --questions FILE"
        )


def _row(way: Way) -> tuple[str, ...]:
    shares = (f"{100 * share:.1f} %" for share in (way.first, way.first_5, way.first_10))
    lacking = ", ".join(f"{part} {count}" for part, count in sorted(way.degraded.items()))
    return ("+".join(way.layers), *shares, f"{way.mrr:.3f}", f"{way.p50_ms:.1f} ms", f"{way.p99_ms:.1f} ms", lacking)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("recall",), help="recall: are questions answered by their evidence?")
    parser.add_argument(
        "--questions",
        metavar="FILE",
        help='JSON lines {"question": "...", "evidence": ["turn_id", ...]}; without, they are made of the log',
    )
    parser.add_argument(
        "--count",
        type=positive,
        default=100,
        metavar="N",
        help="so many questions are made of the log (default: 100)",
    )
    parser.add_argument("--limit", type=positive, default=10, metavar="N", help="at most so many items (default: 10)")


bench = Command(
    name="bench",
    help="how well and how fast your own log is recalled",
    description="Ask a space questions whose evidence is known, of turns alone and of all layers, and count how high "
    "up it stands. Nothing is written.",
    run=_run,
    configure=_options,
    examples=(
        "lamina bench recall --space alice",
        "lamina bench recall --questions mine.jsonl      # your own questions, with the turns that answer them",
        "lamina bench recall --count 500 --json",
    ),
    outputs={"bench recall": Benched},
)
