"""`lamina show persona` and `lamina show prompt`: who somebody is, and what is put before a model."""

from __future__ import annotations

import argparse

from lamina.cli.command import DONE, Context
from lamina.cli.conversation import utc_text
from lamina.cli.output import one_line
from lamina.query.asking import as_of
from lamina.query.shown_atoms import WithMemory
from lamina.records import Prompt
from lamina.requests import PersonaIs, PersonaOf, Revision


def persona(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """The file as it is, or was; with `--diff` what the last revisions changed in it."""
    request = PersonaOf(as_of=as_of(options), changes=options.limit if options.diff else 0, every=options.all)
    found: PersonaIs = with_memory(context, lambda memory: memory.ask("persona", request, PersonaIs))
    if context.json:
        context.document(found)
        return DONE
    if options.diff:
        for change in found.changes:
            _print_change(context, change)
    elif found.text:
        context.printer.block(found.text.rstrip("\n"), "")
    if not found.n:
        context.line(f"nothing is known yet of whom space {context.space!r} is about")
    return DONE


def _print_change(context: Context, change: Revision) -> None:
    printer = context.printer
    printer.heading(f"revision {change.n} · {utc_text(change.time)} · {change.kind} {one_line(change.event)}")
    for sign, lines, style in (("-", change.removed, "red"), ("+", change.added, "green")):
        for line in lines:
            printer.line(f"{sign} {one_line(line, 400)}", style)


def prompt(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """Both halves of the prompt block, as a host gets them."""
    found: Prompt = with_memory(context, lambda memory: memory.prompt(options.session, as_of=as_of(options)))
    if context.json:
        context.document(found)
        return DONE
    for title, text in (("stable", found.stable), ("dynamic", found.dynamic)):
        if text:
            context.printer.heading(title)
            context.printer.block(text, "")
    return DONE


def options(parser: argparse.ArgumentParser) -> None:
    """The options of `show` that are about the persona."""
    parser.add_argument("--diff", action="store_true", help="of persona: what each revision took out and put in")
    parser.add_argument("--all", action="store_true", help="of persona: also the lines that have no room in it")
