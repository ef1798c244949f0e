"""The verb `top`: the state of a home, looked at again and again, with rates."""

from __future__ import annotations

import argparse
import io
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.cli.command import DONE, Command, Context, positive
from lamina.cli.output import Column, Printer, ago_text, one_line, size_text
from lamina.cli.state import ServiceStatus, Status, look
from lamina.errors import Invalid

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

EVERY_S = 1.0


class Rate(Struct, frozen=True, kw_only=True):
    """Of one service since the look before: events folded a second, and the time until it is not behind any more;
    null where it cannot be known."""

    service: str
    events_per_second: float | None
    eta_s: float | None


class Moment(Struct, frozen=True, kw_only=True):
    """One look. `published_per_second` counts messages that came into the log since the look before."""

    status: Status
    published_per_second: float | None
    rates: tuple[Rate, ...]


def moment(before: tuple[float, Status] | None, status: Status, now_s: float) -> Moment:
    """The look `status` at `now_s`, with rates against the one before it. Pure."""
    seconds = now_s - before[0] if before is not None else 0.0
    old = before[1] if before is not None and seconds > 0 else None
    published = None
    if old is not None and old.bus.log is not None and status.bus.log is not None:
        same = old.bus.log.epoch == status.bus.log.epoch
        published = (status.bus.log.last_seq - old.bus.log.last_seq) / seconds if same else None
    known = {service.name: service for service in old.services} if old is not None else {}
    rates = tuple(_rate(known.get(service.name), service, seconds) for service in status.services)
    return Moment(status=status, published_per_second=None if published is None else round(published, 1), rates=rates)


def _rate(before: ServiceStatus | None, now: ServiceStatus, seconds: float) -> Rate:
    earlier = {worker.pid: worker.applied for worker in before.workers} if before is not None else {}
    folded = [
        worker.applied - old
        for worker in now.workers
        if worker.applied is not None and (old := earlier.get(worker.pid)) is not None
    ]
    rate = round(max(0, sum(folded)) / seconds, 1) if folded and seconds > 0 else None
    waits = now.lag.events or 0
    eta_s = round(waits / rate, 1) if rate and waits else 0.0 if not waits else None
    return Rate(service=now.name, events_per_second=rate, eta_s=eta_s)


def _run(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    if not options.every > 0:
        raise Invalid(f"--every must be above 0 seconds, not {options.every:g}")
    asyncio.run(_watched(context, options.every, options.count))
    return DONE


async def _watched(context: Context, every_s: float, most: int | None) -> None:
    import asyncio
    import contextlib

    with contextlib.ExitStack() as stack:
        live = stack.enter_context(_live(context)) if context.printer.terminal and not context.json else None
        before: tuple[float, Status] | None = None
        count = 0
        while True:
            status, now_s = await look(context.home), time.monotonic()
            now = moment(before, status, now_s)
            if context.json:
                context.document(now)
            elif live is not None:
                live.update(_text(now), refresh=True)
            else:
                context.line(table(now))
            before, count = (now_s, status), count + 1
            if count == most:
                return
            await asyncio.sleep(every_s)


def table(now: Moment) -> str:
    """A moment as text: the log, then a line for every service."""
    out = io.StringIO()
    printer = Printer(out)
    bus = now.status.bus
    printer.line(f"{bus.state}  {bus.home}" + (f"  {bus.error}" if bus.error else ""))
    if bus.log is not None:
        rate = "" if now.published_per_second is None else f", {now.published_per_second:,.0f}/s in"
        printer.line(f"log at {bus.log.last_seq:,}, {size_text(bus.log.size_bytes)}{rate}, {bus.waiting} in outboxes")
    titles = ("service", "workers", "events/s", "behind", "done in", "due", "errors", "dead")
    columns = [Column(title, right=title != "service") for title in titles]
    rates = {rate.service: rate for rate in now.rates}
    printer.table(columns, [_row(service, rates[service.name]) for service in now.status.services])
    tokens = now.status.tokens
    printer.line(f"{tokens.spent:,} tokens spent, {tokens.saved:,} saved by stubs")
    for service in now.status.services:
        if service.last_error and service.errors:
            printer.line(f"{service.name}: {one_line(service.last_error, 160)}")
    return out.getvalue()


def _row(service: ServiceStatus, rate: Rate) -> tuple[str, ...]:
    lag = service.lag.events
    return (
        service.name,
        str(len(service.workers)) if service.workers else "none",
        "" if rate.events_per_second is None else f"{rate.events_per_second:,.0f}",
        "?" if lag is None else f"{lag:,}",
        "" if not lag or rate.eta_s is None else ago_text(rate.eta_s),
        f"{sum(worker.due or 0 for worker in service.workers):,}",
        f"{service.errors:,}",
        f"{service.dead:,}",
    )


def _live(context: Context) -> Live:
    from rich.console import Console
    from rich.live import Live

    console = Console(file=context.out, markup=False, highlight=False, emoji=False)
    return Live(console=console, auto_refresh=False, screen=True)


def _text(now: Moment) -> RenderableType:
    from rich.text import Text

    return Text(table(now), no_wrap=True, overflow="ellipsis")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--every", metavar="SECONDS", type=float, default=EVERY_S, help="between looks (default: 1)")
    parser.add_argument("--count", metavar="N", type=positive, help="end after so many looks (default: at Ctrl-C)")


top = Command(
    name="top",
    help="watch a home at work: rates, how far behind, how long still",
    description="Look at a home again and again: what comes into the log, and for each service how many events it "
    "folds a second, how many wait and how long they will take. Ctrl-C ends it.",
    run=_run,
    configure=_options,
    examples=(
        "lamina top                       # on a terminal: in place, until Ctrl-C",
        "lamina top --json --count 10     # ten looks, a line each",
    ),
    outputs={"top": Moment},
)
