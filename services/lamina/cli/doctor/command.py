"""Running the checks, and telling what they found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from msgspec import Struct

from lamina.cli.command import DONE, FAILED, Command, Context
from lamina.cli.doctor.finding import Finding, State

MARKS: dict[State, tuple[str, str, str]] = {
    "ok": ("✓", "ok", "green"),
    "warning": ("!", "warning", "yellow"),
    "broken": ("✗", "broken", "bold red"),
}


class Report(Struct, frozen=True, kw_only=True):
    """`state` is the worst of the findings."""

    state: State
    findings: tuple[Finding, ...]


def examine(context: Context) -> Report:
    """Every check on the home and the machine; a check that cannot be made is a finding."""
    import asyncio

    from lamina.cli.doctor import live, machine, model, place

    config, settings = place.settings(context.home)
    found = [*machine.findings(config), settings, *place.findings(context), *model.findings(config)]
    if not any(finding.check == "home" and finding.state == "broken" for finding in found):
        found += asyncio.run(live.findings(context.home, config))
    return Report(state=worst(found), findings=tuple(found))


def worst(findings: Sequence[Finding]) -> State:
    states = {finding.state for finding in findings}
    return "broken" if "broken" in states else "warning" if "warning" in states else "ok"


def _run(context: Context, _: argparse.Namespace) -> int:
    report = examine(context)
    if context.json:
        context.document(report)
    else:
        _print(context, report)
    return FAILED if report.state == "broken" else DONE


def _print(context: Context, report: Report) -> None:
    printer = context.printer
    for finding in report.findings:
        mark, word, color = MARKS[finding.state]
        shown = mark if printer.terminal else f"{word:<8}"
        printer.parts((shown, color), (f" {finding.check:<14} ", "bold"), (finding.found, ""))
        if finding.remedy:
            printer.block(f"→ {finding.remedy}", " " * (17 if printer.terminal else 24), "cyan")
    counted = {state: sum(one.state == state for one in report.findings) for state in MARKS}
    printer.line()
    if report.state == "ok":
        printer.line(f"all {counted['ok']} checks are well", "green")
    else:
        printer.line(f"{counted['broken']} broken, {counted['warning']} warnings, {counted['ok']} well", "bold")


doctor = Command(
    name="doctor",
    help="find what is wrong and say what to do",
    description="Look at the machine, the home and what runs on it. Exit code 1 when something is broken; warnings "
    "do not fail. It changes nothing and starts nothing.",
    run=_run,
    examples=("lamina doctor", "lamina doctor --json", "lamina --home /srv/lamina doctor"),
    outputs={"doctor": Report},
)
