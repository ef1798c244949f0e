"""The verb `scale`: how many worker processes run a service."""

from __future__ import annotations

import argparse
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.cli.command import DONE, Command, Context
from lamina.cli.running import running

if TYPE_CHECKING:
    from lamina.home import Home
    from lamina.runtime.membership import Heartbeat

WAIT_S = 20.0
LOOK_S = 0.05


class ScaledWorker(Struct, frozen=True):
    """A worker process that was asked for, and how many lanes it follows. `state` as in `status`."""

    pid: int
    state: str
    lanes: int


class Scaled(Struct, frozen=True, kw_only=True):
    """`wanted` processes of a service; `running`: a daemon is there to start them, and `workers` are those it has.

    `complete` is false where not all of them followed their lanes within 20 s: `status` says why.
    """

    service: str
    wanted: int
    running: bool
    complete: bool
    workers: tuple[ScaledWorker, ...]


def _run(context: Context, options: argparse.Namespace) -> int:
    from lamina import config
    from lamina.daemon import scale

    home = context.home
    scale(home, config.load(home.config), options.service, options.n)
    daemon = running(home)
    scaled = _waited(home, options.service, options.n) if daemon is not None else _asked(options.service, options.n)
    if context.json:
        context.document(scaled)
    elif not scaled.running:
        context.line(f"{scaled.wanted} workers of {scaled.service} run from the next `lamina up` on")
    else:
        for worker in scaled.workers:
            context.line(f"{scaled.service}: process {worker.pid} {worker.state}, {worker.lanes} lanes")
        if not scaled.wanted:
            context.line(f"{scaled.service} runs inside the daemon")
        if not scaled.complete:
            context.line("not all of them are at work yet; `lamina status` says why")
    return DONE if scaled.complete else 1


def _asked(service: str, n: int) -> Scaled:
    return Scaled(service=service, wanted=n, running=False, complete=True, workers=())


def _waited(home: Home, service: str, n: int) -> Scaled:
    """Look until `n` processes follow their lanes, and no others of the daemon's do."""
    from lamina.daemon import supervised
    from lamina.runtime.membership import beats_of

    until = time.monotonic() + WAIT_S
    while True:
        own = {one.pid for one in supervised(home) if one.service == service and one.pid}
        beats = [beat for beat in beats_of(home, service).values() if beat.pid in own]
        complete = len(own) == n and _settled(n, beats, list(beats_of(home, service).values()))
        if complete or time.monotonic() > until:
            workers = tuple(ScaledWorker(beat.pid, beat.state, beat.lanes) for beat in beats)
            return Scaled(service=service, wanted=n, running=True, complete=complete, workers=workers)
        time.sleep(LOOK_S)


def _settled(n: int, own: list[Heartbeat], all: list[Heartbeat]) -> bool:
    """Does every worker say that it is at work, and are all lanes shared out once?"""
    from lamina.ids import LANES

    if any(beat.state == "serving" for beat in all):
        return len(own) == n
    shared = sum(beat.lanes for beat in all) == LANES
    return len(own) == n and shared and not any(beat.state == "starting" for beat in all)


def _options(parser: argparse.ArgumentParser) -> None:
    names = sorted(point.name for point in entry_points(group="lamina.services"))
    parser.add_argument("service", metavar="SERVICE", choices=names, help="which one; `lamina status` names them")
    parser.add_argument("n", metavar="N", type=int, help="how many processes; 0: inside the daemon, as at first")


scale = Command(
    name="scale",
    help="run a service in so many processes",
    description="Set how many worker processes of a service the daemon runs beside itself. It starts and stops them, "
    "starts those again that end by themselves, and goes by the number at its next start too. They share the lanes, "
    "and the daemon's own worker stands by. A service that must not be doubled says why.",
    run=_run,
    configure=_options,
    examples=(
        "lamina scale atoms 2        # two processes, half of the spaces each",
        "lamina scale atoms 0        # inside the daemon again",
        "lamina scale journal 2 --json",
    ),
    outputs={"scale": Scaled},
)
