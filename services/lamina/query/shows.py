"""What `lamina show` can show: one entry each in `SHOWS`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from lamina import ids, times
from lamina.cli.command import DONE, Context
from lamina.cli.conversation import print_turns, utc_text
from lamina.cli.output import Column, one_line, size_text
from lamina.errors import LaminaError
from lamina.query import savings, shown_atoms, shown_persona, shown_scenarios, shown_skills
from lamina.query.asking import as_of
from lamina.query.shown_atoms import WithMemory
from lamina.records import Prompt
from lamina.requests import (
    AtomInfo,
    Canvases,
    CanvasesAre,
    CanvasIs,
    CutInfo,
    PersonaIs,
    SavingsAre,
    ScenarioInfo,
    SessionPage,
    Sessions,
    Turn,
    TurnPage,
    Turns,
)
from lamina.skills import SkillInfo


class Show(Struct, frozen=True, kw_only=True):
    """`output` is the type of each document that `--json` writes; `service` whose view it is read from, where it can
    be asked as of a moment."""

    help: str
    run: Callable[[Context, argparse.Namespace, WithMemory], int]
    output: Any
    service: str = ""


class SpaceInfo(Struct, frozen=True, kw_only=True):
    """A space of this home. `sessions`, `turns` and `last` are null while its journal cannot be read."""

    space: str
    folder: str
    log_bytes: int
    sessions: int | None = None
    turns: int | None = None
    last: str | None = None


def _log(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    request = Turns(session=options.session, limit=options.limit, newest=True, as_of=as_of(options))
    page: TurnPage = with_memory(context, lambda memory: memory.ask("turns", request, TurnPage))
    if context.json:
        for turn in page.turns:
            context.document(turn)
        return DONE
    print_turns(context.printer, page.turns, most_lines=max(0, options.lines))
    if not page.turns:
        of = f" in session {options.session!r}" if options.session else ""
        context.line(f"nothing was said yet{of} in space {context.space!r}")
    if page.more:
        context.note(f"only the last {len(page.turns)} turns are shown; --limit shows more")
    return DONE


def _sessions(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    request = Sessions(limit=options.limit, as_of=as_of(options))
    page: SessionPage = with_memory(context, lambda memory: memory.ask("sessions", request, SessionPage))
    if context.json:
        context.document(page)
    elif not page.sessions:
        context.line(f"no sessions yet in space {context.space!r}")
    else:
        columns = (Column("last"), Column("turns", right=True), Column("session"), Column(""))
        rows = [
            (utc_text(one.last), str(one.turns), one_line(one.session), "ended" if one.ended else "")
            for one in page.sessions
        ]
        context.printer.table(columns, rows)
    return DONE


def _spaces(context: Context, options: argparse.Namespace, _: WithMemory) -> int:
    spaces = [_space(context, name) for name in context.home.space_names()]
    spaces.sort(key=lambda space: space.last or "", reverse=True)
    shown = spaces[: options.limit]
    if context.json:
        for space in shown:
            context.document(space)
        return DONE
    if not spaces:
        context.line(f"no spaces yet on {context.home.path}")
        return DONE
    columns = (
        Column("last"),
        *(Column(title, right=True) for title in ("sessions", "turns", "log")),
        Column("space"),
    )
    rows = [
        (
            utc_text(one.last) if one.last else "?",
            "?" if one.sessions is None else str(one.sessions),
            "?" if one.turns is None else str(one.turns),
            size_text(one.log_bytes),
            one_line(one.space),
        )
        for one in shown
    ]
    context.printer.table(columns, rows)
    if len(spaces) > len(shown):
        context.note(f"{len(shown)} of {len(spaces)} spaces are shown; --limit shows more")
    return DONE


def _space(context: Context, name: str) -> SpaceInfo:
    from lamina.store.driver import connect, translated

    folder = context.home.space(name)
    size = sum(file.stat().st_size for file in (folder / "log").glob("*.jsonl"))
    plain = SpaceInfo(space=name, folder=ids.token(name), log_bytes=size)
    view = folder / "views" / "journal.db"
    if not view.exists():
        return plain
    try:
        with translated(view):
            db = connect(view, readonly=True)
            try:
                row = db.execute("SELECT count(*), coalesce(sum(turns), 0), max(last_us) FROM sessions").fetchone()
            finally:
                db.close()
    except LaminaError:
        return plain
    last = times.text_of(times.from_micros(row[2])) if row[2] is not None else None
    return SpaceInfo(space=name, folder=plain.folder, log_bytes=size, sessions=row[0], turns=row[1], last=last)


def _canvas(context: Context, options: argparse.Namespace, with_memory: WithMemory) -> int:
    """From the files, which are there to be read, the last changed first; of the past from the view of then."""
    then = as_of(options)
    if then is None:
        canvases = _drawn(context, options)
    else:
        request = Canvases(as_of=then, session=options.session, limit=options.limit)
        canvases = list(with_memory(context, lambda memory: memory.ask("canvases", request, CanvasesAre)).canvases)
    for canvas in canvases:
        if context.json:
            context.document(canvas)
            continue
        context.printer.heading(one_line(canvas.session) or "no session")
        context.printer.block(canvas.text, "")
    if not canvases and not context.json:
        of = f" of session {options.session!r}" if options.session else ""
        context.line(f"there is no canvas{of} in space {context.space!r}: it is drawn of a session's tool results")
    return DONE


def _drawn(context: Context, options: argparse.Namespace) -> list[CanvasIs]:
    folder = context.home.space(context.space) / "canvas"
    wanted = f"{ids.token(options.session)}.mmd" if options.session else "*.mmd"
    files = sorted(folder.glob(wanted), key=lambda file: file.stat().st_mtime, reverse=True)[: options.limit]
    return [CanvasIs(session=ids.untoken(file.stem), text=file.read_text(encoding="utf-8")) for file in files]


SHOWS = {
    "log": Show(help="what was said", run=_log, output=Turn, service="journal"),
    "atoms": Show(help="what was derived of it", run=shown_atoms.atoms, output=AtomInfo, service="atoms"),
    "scenarios": Show(
        help="the situations that this belongs to; with a name, one of them",
        run=shown_scenarios.scenarios,
        output=ScenarioInfo,
        service="scenarios",
    ),
    "skills": Show(
        help="procedures that worked, as files for an agent; with a name, one of them",
        run=shown_skills.skills,
        output=SkillInfo,
        service="scenarios",
    ),
    "persona": Show(
        help="who somebody is and how they want things done",
        run=shown_persona.persona,
        output=PersonaIs,
        service="persona",
    ),
    "prompt": Show(help="what is put before a model", run=shown_persona.prompt, output=Prompt, service="prompt"),
    "sessions": Show(help="which sessions there are", run=_sessions, output=SessionPage, service="journal"),
    "canvas": Show(
        help="the work of each session as a Mermaid chart", run=_canvas, output=CanvasIs, service="offload"
    ),
    "ledger": Show(help="tokens that offloading saved", run=savings.ledger, output=SavingsAre, service="offload"),
    "context": Show(help="how contexts were cut to fit", run=savings.cuts, output=CutInfo, service="offload"),
    "spaces": Show(help="which memories this home holds", run=_spaces, output=SpaceInfo),
}
