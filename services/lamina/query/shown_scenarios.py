"""`lamina show scenarios`: the situations there are, and one of them as its file says it."""

from __future__ import annotations

import argparse

from lamina.cli.command import DONE, FAILED, Context
from lamina.cli.conversation import utc_text
from lamina.cli.output import Column, one_line
from lamina.query.asking import as_of
from lamina.query.shown_atoms import WithMemory
from lamina.requests import ScenarioInfo, Scenarios, ScenariosAre

TITLE_CHARS = 60
_COLUMNS = (
    *(Column("last"), Column("status"), Column("heat", right=True), Column("facts", right=True)),
    *(Column("sessions", right=True), Column("title"), Column("name")),
)


def scenarios(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """A row a scenario, the hottest first; with a name, its file."""
    request = Scenarios(name=options.name or "", limit=options.limit, as_of=as_of(options))
    page: ScenariosAre = with_memory(context, lambda memory: memory.ask("scenarios", request, ScenariosAre))
    if context.json:
        for one in page.scenarios:
            context.document(one)
        return DONE if page.scenarios or not options.name else FAILED
    if options.name:
        return _one(context, options.name, page)
    if not page.scenarios:
        context.line(f"no scenarios yet in space {context.space!r}; they are made of atoms, a little after them")
        return DONE
    context.printer.table(_COLUMNS, [_row(one) for one in page.scenarios])
    if page.more:
        context.note(f"only {len(page.scenarios)} scenarios are shown; --limit shows more")
    return DONE


def _one(context: Context, name: str, page: ScenariosAre) -> int:
    if not page.scenarios:
        context.note(
            f"lamina: no scenario of space {context.space!r} is called {name!r}; `show scenarios` lists them"
        )
        return FAILED
    one = page.scenarios[0]
    if one.merged:
        context.note(f"lamina: {one.slug} was merged; see `lamina show scenarios {one.merged}`")
        return DONE
    context.printer.block(one.text, "")
    return DONE


def _row(one: ScenarioInfo) -> tuple[str, ...]:
    return (
        utc_text(one.last),
        one.status,
        f"{one.heat:.1f}",
        str(one.facts),
        str(one.sessions),
        one_line(one.title, TITLE_CHARS),
        one.slug,
    )
