"""What the demo prints, part by part. A later layer adds its part to `SECTIONS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from lamina.cli.conversation import moment_text
from lamina.cli.output import Column, Printer, ago_text, one_line, size_text
from lamina.demo.records import Answer, Demo, FileInfo
from lamina.demo.story import Story

Section = Callable[[Printer, Demo, Story], None]
ANSWER_LINES = 3
MOST_FILES = 6
FOLDERS = {
    "log": "the ledger: every event, verbatim, in order; the source of all the rest",
    "blobs": "large data",
    "refs": "tool results as text, one file each",
    "canvas": "the work of a session as a Mermaid chart",
    "scenarios": "what belongs together, as Markdown",
    "skills": "how something is done",
    "views": "SQLite; delete them and they are made again",
    "cache": "vectors, by the hash of their text",
    "persona.md": "who this is about",
}


def opening(printer: Printer, demo: Demo, story: Story) -> None:
    printer.panel(f"lamina demo: {story.title}", story.story)


def happened(printer: Printer, demo: Demo, story: Story) -> None:
    printer.heading("What happened")
    columns = (
        Column("session"),
        Column("language"),
        Column("turns", right=True),
        Column("tool results", right=True),
        Column("it begins with"),
    )
    rows = [
        (
            played.session,
            played.language,
            str(played.turns),
            str(played.tool_results),
            one_line(talk.events[0].text, 48),
        )
        for played, talk in zip(demo.sessions, story.sessions, strict=True)
    ]
    printer.table(columns, rows)
    seconds = demo.seconds
    turns = sum(played.turns + played.tool_results for played in demo.sessions)
    known = "; it was known already, so nothing changed" if demo.known else ""
    printer.line(
        f"{turns} events through the log, each fsynced before it was accepted, in {ago_text(seconds.publish)}; "
        f"everything remembered {ago_text(seconds.settle)} later{known}.",
        "dim",
    )
    if demo.unsettled:
        printer.line(f"not all was digested yet: {demo.unsettled}", "yellow")


def stubs(printer: Printer, demo: Demo, story: Story) -> None:
    printer.heading("Tool results, kept whole, and short in the context")
    columns = (
        Column("tool"),
        Column("node"),
        Column("tokens", right=True),
        Column("as a stub", right=True),
        Column("saved", right=True),
    )
    rows = [
        (
            stub.tool,
            stub.node,
            str(stub.original_tokens),
            str(stub.stub_tokens),
            f"{1 - stub.stub_tokens / stub.original_tokens:.0%}",
        )
        for stub in demo.stubs
    ]
    printer.table(columns, rows)
    failed = next((stub for stub in demo.stubs if stub.tool == "run_tests"), None)
    if failed is not None:
        printer.panel("what the agent sees of the test log", failed.text)
    reading = demo.reading
    if reading.text:
        printer.panel(f'what it reads back: read("{reading.node}", query="{reading.query}")', reading.text)


def canvas(printer: Printer, demo: Demo, story: Story) -> None:
    """The work of the first session, once it is drawn."""
    if demo.canvas:
        printer.line()
        printer.heading(f"The work of session {one_line(demo.sessions[0].session)} as a chart (Mermaid)")
        printer.block(demo.canvas, "  ")


def answers(printer: Printer, demo: Demo, story: Story) -> None:
    printer.heading("What it remembers when it is asked")
    for answer in demo.answers:
        printer.line()
        printer.parts(("? ", "bold cyan"), (answer.question, "bold cyan"), (f"  ({answer.language})", "dim"))
        _print_answer(printer, answer)
    printer.line()
    each = demo.seconds.recall / max(1, len(demo.answers))
    printer.line(
        f"{len(demo.answers)} questions in {ago_text(demo.seconds.recall)} ({each * 1000:.0f} ms each)", "dim"
    )


def _print_answer(printer: Printer, answer: Answer) -> None:
    hits = answer.hits
    for item in hits.items:
        printer.block(item.text, "  ", most=ANSWER_LINES)
        source = ", ".join(item.turn_ids or item.sources)
        who = one_line(item.name or item.role or item.layer)
        printer.line(f"  ↳ {who}, {moment_text(item.time)}, session {one_line(item.session)}, from {source}", "dim")
    if hits.status == "none":
        printer.line("  nothing is remembered about it", "yellow")
    for part in hits.degraded:
        printer.line(f"  {part.part}: {part.why}; {part.remedy}", "yellow")


def always(printer: Printer, demo: Demo, story: Story) -> None:
    """What is given with every answer, once there is something."""
    persona = next((answer.hits.persona for answer in demo.answers if answer.hits.persona), "")
    if persona:
        printer.line()
        printer.heading("What it always keeps in mind")
        printer.block(persona, "  ")


def disk(printer: Printer, demo: Demo, story: Story) -> None:
    printer.heading("Where it lies on disk")
    root = PurePosixPath("spaces") / PurePosixPath(demo.files[0].path).parts[1] if demo.files else PurePosixPath()
    printer.line(f"{demo.home}/{root}/")
    folders: dict[str, list[FileInfo]] = {}
    for file in demo.files:
        folders.setdefault(PurePosixPath(file.path).parts[2], []).append(file)
    for index, (folder, files) in enumerate(folders.items()):
        last = index == len(folders) - 1
        bar = "   " if last else "│  "
        is_file = len(PurePosixPath(files[0].path).parts) == 3
        name = folder if is_file else f"{folder}/"
        printer.parts(("└─ " if last else "├─ ", "dim"), (f"{name:<12}", "bold"), (FOLDERS.get(folder, ""), "dim"))
        if is_file:
            continue
        for file in files[:MOST_FILES]:
            inner = "/".join(PurePosixPath(file.path).parts[3:])
            printer.parts((f"{bar}   ", "dim"), (f"{inner:<28} {size_text(file.size_bytes):>8}", ""))
        if len(files) > MOST_FILES:
            printer.parts((f"{bar}   ", "dim"), (f"and {len(files) - MOST_FILES} more", "dim"))


def onward(printer: Printer, demo: Demo, story: Story) -> None:
    printer.heading("How to go on")
    if demo.kept:
        where = f"lamina --home {demo.home} --space {demo.space}"
        lines = [
            (f'{where} recall "open orders"', "ask something else"),
            (f"{where} show log", "read all of it"),
        ]
    else:
        printer.line("This home was temporary and is gone. `lamina demo --keep` leaves it to look around in.")
        lines = []
    lines += [
        ("lamina import ~/.claude/projects/*/*.jsonl", "remember your own sessions"),
        ('lamina recall "what did we decide?"', "and ask"),
        ("lamina --help", "everything else"),
    ]
    widest = max(len(command) for command, _ in lines)
    for command, what in lines:
        printer.parts(("  $ ", "dim"), (f"{command:<{widest}}", "bold"), (f"  # {what}", "dim"))


SECTIONS: tuple[Section, ...] = (opening, happened, stubs, canvas, answers, always, disk, onward)
OPTIONAL = (canvas, always)


def print_report(printer: Printer, demo: Demo, story: Story) -> None:
    """All sections, an empty line between them."""
    for index, section in enumerate(SECTIONS):
        if index and section not in OPTIONAL:
            printer.line()
        section(printer, demo, story)
