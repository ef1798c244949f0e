"""Checks of what runs on a home, and of what the log and the views hold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from itertools import islice

from lamina.bus.monitor import monitored
from lamina.cli.doctor.finding import Finding, broken, ok, warning
from lamina.cli.output import ago_text, one_line
from lamina.cli.running import running
from lamina.cli.state import ANSWER_S, FRESH_S, Status, connected, look
from lamina.config import Config
from lamina.errors import LaminaError
from lamina.home import Home, Runtime
from lamina.store.driver import connect, translated
from lamina.times import from_micros, text_of

CLOCK_S = 5.0
FUTURE_S = 86_400.0
MOST_SPACES = 200
NEARLY_FULL = 0.9


async def findings(home: Home, config: Config | None) -> Sequence[Finding]:
    daemon = running(home)
    if daemon is None:
        return [ok("daemon", "not running; the first client starts it"), sync_written(home), future(home)]
    found = [versions(daemon)]
    status = await look(home)
    if status.bus.state != "up":
        remedy = f"`lamina down`, then `lamina up`; its log is {home.log_file}"
        return [*found, broken("bus", f"the daemon runs, its log does not answer: {status.bus.error}", remedy)]
    return [*found, room(status), *workers(status), await sync(daemon), await clock(daemon), future(home)]


def versions(daemon: Runtime) -> Finding:
    mine = version("lamina")
    if daemon.version == mine:
        return ok("daemon", f"process {daemon.pid}, version {mine}")
    return warning(
        "daemon",
        f"it is of version {daemon.version}, this is {mine}",
        "`lamina down`; the next client starts it anew",
    )


def room(status: Status) -> Finding:
    log = status.bus.log
    if log is None or log.max_bytes <= 0:
        return ok("bus", "the log answers")
    used = log.size_bytes / log.max_bytes
    found = f"the log answers, {used:.0%} of its room used"
    if used < NEARLY_FULL:
        return ok("bus", found)
    return warning("bus", found, "raise bus.max_bytes in config.toml, then `lamina down`")


def workers(status: Status) -> list[Finding]:
    found = []
    for service in status.services:
        name = f"service {service.name}"
        ages = [worker.beat_seconds for worker in service.workers if worker.beat_seconds is not None]
        if not service.workers:
            found.append(broken(name, "nobody runs it", f"`lamina worker {service.name}`, or see daemon.services"))
        elif ages and min(ages) > FRESH_S:
            remedy = "end its process; the daemon or another worker goes on"
            found.append(broken(name, f"no sign of life for {ago_text(min(ages))}", remedy))
        elif service.dead:
            found.append(warning(name, f"{service.dead} events are parked", "`lamina status` shows the last reason"))
        elif service.errors:
            said = one_line(service.last_error, 200)
            found.append(warning(name, f"{service.errors} errors, the last: {said}", "see `lamina status`"))
    return found or [ok("services run", ", ".join(service.name for service in status.services))]


async def sync(daemon: Runtime) -> Finding:
    """What was accepted is on the disk: the server fsyncs before it answers."""
    if not daemon.monitor_url:
        return warning("fsync", "the server is not ours and cannot be asked", "run it with sync_interval: always")
    try:
        config = (await monitored(daemon.monitor_url, "/jsz")).get("config", {})
    except LaminaError as error:
        return warning("fsync", f"the server does not tell: {error}", "see `lamina status`")
    return _sync(config.get("sync_always") is True)


def sync_written(home: Home) -> Finding:
    written = home.bus / "server.conf"
    return _sync(not written.exists() or "sync_interval: always" in written.read_text(errors="replace"))


def _sync(always: bool) -> Finding:
    if always:
        return ok("fsync", "every message, before it is accepted")
    return broken(
        "fsync", "the server does not fsync every message: a power cut could lose some", "`lamina down`, `lamina up`"
    )


async def clock(daemon: Runtime) -> Finding:
    """The last arrival in the log is not later than now."""
    try:
        bus = await connected(daemon)
        try:
            last = await bus.last("lamina.ev.>", timeout_s=ANSWER_S)
        finally:
            await bus.close()
    except LaminaError as error:
        return warning("clock", f"the log does not tell: {error}", "see `lamina status`")
    ahead = last.at_us / 1e6 - time.time() if last is not None else 0.0
    if ahead <= CLOCK_S:
        return ok("clock", "not behind the log")
    return warning(
        "clock",
        f"it is {ago_text(ahead)} behind the last arrival in the log: it was set back, or was ahead before",
        "set the clock (NTP); order and ids do not depend on it, recency in recall does",
    )


def future(home: Home) -> Finding:
    """Sessions whose last event says that it happened well after now: a wrong clock or a wrong import."""
    limit_us = int((time.time() + FUTURE_S) * 1e6)
    names = []
    latest = 0
    for view in islice(home.spaces.glob("*/views/journal.db"), MOST_SPACES):
        try:
            with translated(view):
                db = connect(view, readonly=True)
                try:
                    row = db.execute("SELECT max(last_us) FROM sessions").fetchone()
                finally:
                    db.close()
        except LaminaError:
            continue  # a view that cannot be read is about to be made again
        if row[0] is not None and row[0] > limit_us:
            names.append(view.parents[1].name)
            latest = max(latest, row[0])
    if not names:
        return ok("event times", "none in the future")
    return warning(
        "event times",
        f"spaces {', '.join(names[:5])} hold events of the future, up to {text_of(from_micros(latest))}",
        "they are kept as given, and count as new in recall; mend the clock or the source",
    )
