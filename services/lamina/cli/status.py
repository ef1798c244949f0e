"""The verb `status`: the state of a home, for people and as JSON."""

from __future__ import annotations

import argparse

from lamina.cli.command import DONE, Command, Context
from lamina.cli.output import Column, Printer, ago_text, one_line, size_text
from lamina.cli.state import BusStatus, EmbeddingStatus, ServiceStatus, Status, WorkerStatus, look


def _run(context: Context, _: argparse.Namespace) -> int:
    import asyncio

    status = asyncio.run(look(context.home))
    if context.json:
        context.document(status)
    else:
        _print(context.printer, status)
    return DONE


def _print(printer: Printer, status: Status) -> None:
    bus = status.bus
    _print_bus(printer, bus)
    if bus.waiting:
        printer.line(
            f"{bus.waiting} events wait in outboxes: they are published when a client meets the log", "yellow"
        )
    trouble = [service for service in status.services if service.dead or service.errors]
    if bus.state != "down" or trouble:
        printer.line()
        titles = ("service", "workers", "lanes", "behind", "errors", "dead")
        columns = [Column(title, right=title not in ("service", "behind")) for title in titles]
        printer.table(columns, [_row(service) for service in status.services])
    for one in (one for service in status.services for one in service.embedding):
        printer.line(embedding_line(one), "red" if one.state == "put aside" else "dim")
    for service in status.services:
        if service.wanted or len(service.workers) > 1:
            for worker in service.workers:
                printer.line(worker_line(service.name, worker), "red" if worker.state == "frozen" else "dim")
        for ended in service.ended:
            again = f"; again in {ago_text(ended.retry_in_s)}" if ended.retry_in_s else ""
            said = (
                f"{service.name}: a worker, {ended.state} after {ended.restarts} restarts: {one_line(ended.why, 300)}"
            )
            printer.line(said + again, "red" if ended.state == "crash loop" else "yellow")
    for service in trouble:
        if service.last_error:
            printer.line(f"{service.name}: {one_line(service.last_error, 300)}", "red")
        if service.dead:
            printer.line(
                f"{service.name}: {service.dead} parked, the last: {one_line(service.last_dead, 300)}", "red"
            )
    for service in status.services:
        if service.turns is not None:
            turns = service.turns
            parked = f", {turns.parked:,} parked" if turns.parked else ""
            told = f"{turns.extracted:,} turns taken in, {turns.waiting:,} waiting{parked}"
            printer.line(f"{service.name}: {told}", "dim")
    if status.tokens.spent:
        printer.line(f"{status.tokens.spent:,} tokens were spent on decisions", "dim")
    if status.tokens.saved:
        printer.line(f"stubs stand for {status.tokens.saved:,} more tokens of tool results", "dim")
    if not status.complete:
        printer.line("there are more spaces than could be looked at; dead counts those last used")


def _print_bus(printer: Printer, bus: BusStatus) -> None:
    if bus.state == "down":
        printer.parts(("● ", "dim"), (f"nothing runs on {bus.home}", "bold"))
        printer.line("  `lamina up` starts it; so does the first client, by itself", "dim")
        return
    color = "green" if bus.state == "up" else "red"
    age = ago_text(bus.up_seconds or 0.0)
    printer.parts(("● ", color), (bus.state, f"bold {color}"), (f"  {bus.home}  process {bus.pid}, for {age}", ""))
    if bus.error:
        printer.line(f"  {bus.error}", "red")
    if bus.log is not None:
        log = bus.log
        of = f" of {size_text(log.max_bytes)}" if log.max_bytes > 0 else ""
        printer.line(
            f"  log at {log.last_seq}, {log.messages} messages, {size_text(log.size_bytes)}{of}, {bus.url}", "dim"
        )


def embedding_line(state: EmbeddingStatus) -> str:
    """How far the vectors are: `vectors embedding by M: 1,200 made, about 300 wait, 44/s, 7.0 s more`, or why not."""
    parts = [f"{state.embedded:,} made"]
    if state.waiting:
        parts.append(f"about {state.waiting:,} wait")
    if state.waiting and state.per_second:
        parts.append(f"{state.per_second:g}/s")
    if state.eta_s:
        parts.append(f"{ago_text(state.eta_s)} more")
    if state.state == "put aside":
        parts.append(f"{one_line(state.why, 300)}; again in {ago_text(state.retry_in_s)}")
    return f"vectors {state.state}{f' by {state.model}' if state.model else ''}: {', '.join(parts)}"


def worker_line(name: str, worker: WorkerStatus) -> str:
    """One worker: `atoms: process 4711 follows 128 lanes`."""
    doing = f"follows {worker.lanes} lanes" if worker.state == "following" else worker.state
    beat = f", no sign of life for {ago_text(worker.beat_seconds or 0.0)}" if worker.state == "frozen" else ""
    return f"{name}: process {worker.pid} {doing}{beat}"


def _row(service: ServiceStatus) -> tuple[str, ...]:
    lag = service.lag
    if lag.events is None:
        behind = "?" if service.workers else "not running"
    else:
        behind = f"{lag.events} events, {ago_text(lag.seconds or 0.0)}" if lag.events else "no"
    if not service.workers:
        behind = "not running"
    counts = (str(len(service.workers)), str(service.lanes), behind, str(service.errors), str(service.dead))
    return (service.name, *counts)


status = Command(
    name="status",
    help="what runs, how far behind it is, what went wrong",
    description="The log, every service with its workers, how far it is behind the log, its errors and its parked "
    "events. It starts nothing: where nothing runs, that is the answer.",
    run=_run,
    examples=("lamina status", "lamina status --json", "lamina --home /srv/lamina status"),
    outputs={"status": Status},
)
