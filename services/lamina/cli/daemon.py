"""The verbs that start and stop things: up, down, worker."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.cli.command import DONE, Command, Context
from lamina.cli.running import running
from lamina.errors import Invalid, Timeout

if TYPE_CHECKING:
    from lamina.home import Home, Runtime

STOP_S = 15.0


class Started(Struct, frozen=True, kw_only=True):
    """A daemon that takes clients: its process and where it listens."""

    pid: int
    started_us: int
    url: str
    monitor_url: str
    credentials: str
    version: str


class Stopped(Struct, frozen=True):
    """`pid` is null, and `stopped` false, where nothing ran."""

    stopped: bool
    pid: int | None


class Working(Struct, frozen=True):
    """A worker that follows the log."""

    service: str
    pid: int


def _up(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina import config, log
    from lamina.daemon import Daemon

    if options.idle_exit is not None and not options.idle_exit > 0:
        raise Invalid(f"--idle-exit must be above 0 seconds, not {options.idle_exit:g}")
    settings = config.load(context.home.config)
    log.configure(settings.daemon.log_level)
    daemon = Daemon(context.home, settings, idle_exit_s=options.idle_exit)

    def ready(runtime: Runtime) -> None:
        if context.json:
            context.document(runtime)
        elif sys.stdout.isatty():
            context.line(
                f"lamina is up on {context.home.path} (process {runtime.pid}); Ctrl-C or `lamina down` ends it"
            )

    asyncio.run(daemon.run(ready))
    return DONE


def _up_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--idle-exit",
        metavar="SECONDS",
        type=float,
        help="end when nobody was connected for so long (default: never)",
    )


def _down(context: Context, _: argparse.Namespace) -> int:
    runtime = running(context.home)
    if runtime is not None:
        stop(context.home, runtime.pid)
    if context.json:
        context.document(Stopped(stopped=runtime is not None, pid=runtime.pid if runtime else None))
    else:
        context.line(f"stopped process {runtime.pid}" if runtime else f"nothing runs on {context.home.path}")
    return DONE


def stop(home: Home, pid: int) -> None:
    """Ask the daemon `pid` of `home` to end, and wait for it; `Timeout` when it does not."""
    from lamina.home import alive, held

    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + STOP_S
    while alive(pid) and held(home.daemon_lock):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # a client that started it is its parent, and it would stay as a zombie
        if time.monotonic() > until:
            raise Timeout(f"process {pid} has not ended within {STOP_S:.0f} s; its log is {home.log_file}")
        time.sleep(0.02)


def _worker(context: Context, options: argparse.Namespace) -> int:
    import asyncio

    from lamina import config, log
    from lamina.daemon import run_worker

    settings = config.load(context.home.config)
    log.configure(settings.daemon.log_level)

    def ready() -> None:
        if context.json:
            context.document(Working(options.service, os.getpid()))
        elif sys.stdout.isatty():
            context.line(f"worker of {options.service}, process {os.getpid()}; Ctrl-C ends it")

    asyncio.run(run_worker(context.home, settings, options.service, ready))
    return DONE


def _worker_options(parser: argparse.ArgumentParser) -> None:
    names = sorted(point.name for point in entry_points(group="lamina.services"))
    parser.add_argument("service", metavar="SERVICE", choices=names, help="which one; `lamina status` names them")


up = Command(
    name="up",
    help="run the log and every service of a home",
    description="Run the log (a supervised nats-server) and every service of a home until stopped. Clients start "
    "it by themselves when it is not there; run it yourself to keep it.",
    run=_up,
    configure=_up_options,
    examples=(
        "lamina up                               # stays in the foreground; Ctrl-C ends it",
        "lamina up --idle-exit 300               # ends when nobody was connected for five minutes",
        "lamina --home /srv/lamina up --json &   # one line of JSON once it takes clients",
    ),
    outputs={"up": Started},
)
down = Command(
    name="down",
    help="stop what `up` runs",
    description="Stop the daemon of a home cleanly. Nothing accepted is lost; clients wait in their outboxes.",
    run=_down,
    examples=("lamina down", "lamina down --json"),
    outputs={"down": Stopped},
)
worker = Command(
    name="worker",
    help="run one more worker of one service",
    description="Run a worker of one service in a process of its own, beside the daemon of a home. Workers of one "
    "service share its lanes, and those of one that ends, dies or freezes go to the others. `lamina scale` lets the "
    "daemon start and stop them.",
    run=_worker,
    configure=_worker_options,
    examples=("lamina worker journal   # beside the daemon's own; Ctrl-C ends it",),
    outputs={"worker": Working},
)
