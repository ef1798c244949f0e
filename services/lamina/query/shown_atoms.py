"""`lamina show atoms`: what was derived, how it stands, and where it came from."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from lamina.cli.command import DONE, Context
from lamina.cli.conversation import utc_text
from lamina.cli.output import Column, one_line
from lamina.query.asking import as_of, moment
from lamina.requests import AtomInfo, Atoms, AtomsAre

TEXT_CHARS = 70
ID_CHARS = 8
_COLUMNS = (
    *(Column("last said"), Column("type"), Column("said", right=True)),
    *(Column("status"), Column("text"), Column("id")),
)


class WithMemory(Protocol):
    """Runs work on the memory that the global options name."""

    def __call__(self, context: Context, work: Callable[[Any], Awaitable[Any]]) -> Any: ...


def atoms(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """A row an atom, newest first; with `--history` also what no longer holds, and the way from one to the next."""
    request = Atoms(
        id=options.id or "",
        query=options.query or "",
        types=tuple(options.type or ()),
        session=options.session,
        history=options.history or bool(options.id),
        quarantined=options.quarantined,
        limit=options.limit,
        as_of=as_of(options),
        true_at=moment(options.true_at, end=False) if options.true_at else None,
    )
    page: AtomsAre = with_memory(context, lambda memory: memory.ask("atoms", request, AtomsAre))
    if context.json:
        for atom in page.atoms:
            context.document(atom)
        return DONE
    if not page.atoms:
        context.line(f"no atoms in space {context.space!r} for this; they are made of turns, a few at a time")
        return DONE
    context.printer.table(_COLUMNS, [_row(atom) for atom in page.atoms])
    if page.more:
        context.note(f"only {len(page.atoms)} atoms are shown; --limit shows more")
    return DONE


def _row(atom: AtomInfo) -> tuple[str, ...]:
    status = atom.status + (f" by {atom.by[:ID_CHARS]}" if atom.by and atom.status != "undone" else "")
    return (
        utc_text(atom.last),
        atom.type,
        str(atom.count),
        "" if status == "active" else status,
        one_line(atom.text, TEXT_CHARS),
        atom.id,
    )


def options(parser: argparse.ArgumentParser) -> None:
    """The options of `show` that are about atoms."""
    parser.add_argument("--type", action="append", metavar="NAME", help="of atoms: only this type (may be repeated)")
    parser.add_argument("--query", metavar="WORDS", help="of atoms: only those with one of these words")
    parser.add_argument("--id", metavar="ID", help="of atoms: one, with what it replaced and what replaced it")
    parser.add_argument(
        "--true-at", metavar="TIME", help="of atoms: those that held at this day or time in the world"
    )
    parser.add_argument("--history", action="store_true", help="of atoms: also what no longer holds")
    parser.add_argument("--quarantined", action="store_true", help="of atoms: what is kept and never recalled")
