"""`lamina show skills`: the procedures that worked, and one of them as its file says it."""

from __future__ import annotations

import argparse

from lamina.cli.command import DONE, FAILED, Context
from lamina.cli.conversation import utc_text
from lamina.cli.output import Column, one_line
from lamina.query.asking import as_of
from lamina.query.shown_atoms import WithMemory
from lamina.skills import Skills, SkillsAre

DESCRIPTION_CHARS = 70
_COLUMNS = (Column("last"), Column("steps", right=True), Column("description"), Column("name"))


def skills(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """A row a skill, the last used first; with a name, its file."""
    request = Skills(name=options.name or "", limit=options.limit, as_of=as_of(options))
    page: SkillsAre = with_memory(context, lambda memory: memory.ask("skills", request, SkillsAre))
    if context.json:
        for one in page.skills:
            context.document(one)
        return DONE if page.skills or not options.name else FAILED
    if options.name and not page.skills:
        context.note(
            f"lamina: no skill of space {context.space!r} is called {options.name!r}; `show skills` lists them"
        )
        return FAILED
    if options.name:
        context.printer.block(page.skills[0].text, "")
        return DONE
    if not page.skills:
        context.line(f"no skills yet in space {context.space!r}: a situation with two steps that worked becomes one")
        return DONE
    rows = [
        (utc_text(one.last), str(one.steps), one_line(one.description, DESCRIPTION_CHARS), one.name)
        for one in page.skills
    ]
    context.printer.table(_COLUMNS, rows)
    if page.more:
        context.note(f"only {len(page.skills)} skills are shown; --limit shows more")
    return DONE
