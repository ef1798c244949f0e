"""What `lamina show ledger` and `lamina show context` print: the tokens that offloading saved, and each cut."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lamina.cli.command import DONE, FAILED, USAGE, Context
from lamina.cli.output import Column, one_line
from lamina.query.asking import as_of
from lamina.requests import CutInfo, Cuts, CutsAre, Savings, SavingsAre

if TYPE_CHECKING:
    from lamina.query.shown_atoms import WithMemory


def ledger(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """Tokens by session: of whole results, of their stubs, the difference, and what cut contexts left out."""
    request = Savings(session=options.session, limit=options.limit, as_of=as_of(options))
    found: SavingsAre = with_memory(context, lambda memory: memory.ask("savings", request, SavingsAre))
    if context.json:
        context.document(found)
        return DONE
    if not found.sessions:
        context.line(f"no tool results yet in space {context.space!r}")
        return DONE
    titles = ("session", "results", "tokens", "as stubs", "saved", "cut from contexts")
    columns = tuple(Column(title, right=title != "session") for title in titles)
    rows = [
        _row(one_line(one.session), one.results, one.result_tokens, one.stub_tokens, one.cut_tokens)
        for one in found.sessions
    ]
    rows.append(_row("in all", found.results, found.result_tokens, found.stub_tokens, found.cut_tokens))
    context.printer.table(columns, rows)
    return DONE


def _row(name: str, results: int, whole: int, short: int, cut: int) -> tuple[str, ...]:
    return (name, str(results), f"{whole:,}", f"{short:,}", f"{whole - short:,}", f"{cut:,}")


def cuts(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """Every cut of a session's contexts; with `--turn N` what the N-th one made smaller."""
    if not options.session:
        context.note("lamina: show context needs --session NAME: contexts are cut by session")
        return USAGE
    request = Cuts(session=options.session, as_of=as_of(options))
    found: CutsAre = with_memory(context, lambda memory: memory.ask("cuts", request, CutsAre))
    chosen = [one for n, one in enumerate(found.cuts, 1) if options.turn in (None, n)]
    if context.json:
        for one in chosen:
            context.document(one)
    elif not found.cuts:
        context.line(f"no context of session {options.session!r} was cut yet")
    elif options.turn is None:
        titles = ("cut", "event", "window", "before", "after", "made smaller")
        columns = tuple(Column(title, right=title != "made smaller") for title in titles)
        context.printer.table(columns, [_cut_row(n, one) for n, one in enumerate(found.cuts, 1)])
    elif chosen:
        titles = ("message", "how", "before", "after", "node", "call")
        columns = tuple(Column(title, right=title in ("message", "before", "after")) for title in titles)
        context.printer.table(columns, [tuple(_text(cut, title) for title in _FIELDS) for cut in chosen[0].cuts])
    if options.turn is not None and not chosen:
        context.note(f"lamina: session {options.session!r} has {len(found.cuts)} cuts, not {options.turn}")
        return FAILED
    return DONE


_FIELDS = ("index", "level", "before", "after", "node", "key")


def _cut_row(n: int, one: CutInfo) -> tuple[str, ...]:
    levels: dict[str, int] = {}
    for cut in one.cuts:
        levels[cut["level"]] = levels.get(cut["level"], 0) + 1
    made = ", ".join(f"{count} {level}" for level, count in sorted(levels.items()))
    return (str(n), str(one.seq), f"{one.window_tokens:,}", f"{one.before:,}", f"{one.after:,}", made)


def _text(cut: dict[str, object], field: str) -> str:
    return one_line(str(cut.get(field, "")))
