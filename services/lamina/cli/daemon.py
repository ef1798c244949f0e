"""The verbs that start and stop things: up, down, worker."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time

from lamina import config, log
from lamina.cli.command import DONE, Command, Context
from lamina.daemon import Daemon, run_worker
from lamina.errors import Timeout
from lamina.home import Home, Runtime, alive
from lamina.runtime.registry import services

STOP_S = 15.0


def _up(context: Context, options: argparse.Namespace) -> int:
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
    runtime = context.home.runtime()
    if runtime is None:
        stopped = False
    else:
        os.kill(runtime.pid, signal.SIGTERM)
        _wait_gone(context.home, runtime.pid)
        stopped = True
    if context.json:
        context.document({"stopped": stopped, "pid": runtime.pid if runtime else None})
    else:
        context.line(f"stopped process {runtime.pid}" if runtime else f"nothing runs on {context.home.path}")
    return DONE


def _wait_gone(home: Home, pid: int) -> None:
    until = time.monotonic() + STOP_S
    while alive(pid):
        if time.monotonic() > until:
            raise Timeout(f"process {pid} has not ended within {STOP_S:.0f} s; its log is {home.log_file}")
        time.sleep(0.02)


def _worker(context: Context, options: argparse.Namespace) -> int:
    settings = config.load(context.home.config)
    log.configure(settings.daemon.log_level)

    def ready() -> None:
        if context.json:
            context.document({"service": options.service, "pid": os.getpid()})
        elif sys.stdout.isatty():
            context.line(f"worker of {options.service}, process {os.getpid()}; Ctrl-C ends it")

    asyncio.run(run_worker(context.home, settings, options.service, ready))
    return DONE


def _worker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help=f"one of: {', '.join(services())}")


up = Command(
    name="up",
    help="run the log and every service of a home",
    description="Run the log (a supervised nats-server) and every service of a home until stopped. Clients start "
    "it by themselves when it is not there; run it yourself to keep it.",
    run=_up,
    configure=_up_options,
    examples=("lamina up", "lamina --home /srv/lamina up --json", "lamina up --idle-exit 300"),
)
down = Command(
    name="down",
    help="stop what `up` runs",
    description="Stop the daemon of a home cleanly. Nothing accepted is lost; clients wait in their outboxes.",
    run=_down,
    examples=("lamina down",),
)
worker = Command(
    name="worker",
    help="run one more worker of one service",
    description="Run a worker of one service in a process of its own, beside the daemon of the home. Two workers of "
    "one service are safe: a view's lock and the numbers of decisions keep them apart.",
    run=_worker,
    configure=_worker_options,
    examples=("lamina worker journal",),
)
