"""Services at work in this process: those of a daemon, or one alone, as `lamina worker` runs it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lamina.bus.nats import Credentials, NatsBus, connect
from lamina.bus.server import read_credentials
from lamina.config import Config
from lamina.daemon.scale import service_named
from lamina.errors import Unavailable
from lamina.home import Home
from lamina.ids import LANES
from lamina.runtime.descriptors import raise_limit
from lamina.runtime.feed import Feed
from lamina.runtime.membership import HEARTBEAT_S, Membership, serving
from lamina.runtime.registry import Server
from lamina.runtime.spec import Service
from lamina.runtime.views import lane_subjects
from lamina.runtime.worker import Worker


async def run_worker(home: Home, config: Config, name: str, ready: Callable[[], None]) -> None:
    """One more worker of one service, in this process, beside the daemon of the home; until a signal.

    It shares the service's lanes with the others. `Unavailable` where no daemon runs, `Conflict` where the service
    must not be doubled and runs already.
    """
    service = service_named(name)
    runtime = home.runtime()
    url = config.bus.url or (runtime.url if runtime else "")
    credentials = config.bus.credentials or (runtime.credentials if runtime else "")
    if not url:
        raise Unavailable(f"no daemon runs on {home.path}: start it with `lamina up`, or name a bus.url")
    home.prepare()
    stopped = asyncio.Event()
    async with connected(url, credentials, f"lamina-{name}") as bus, running([service], bus, home):
        with signals(lambda _: stopped.set()):
            ready()
            await stopped.wait()


@contextlib.asynccontextmanager
async def connected(url: str, credentials: str, name: str) -> AsyncIterator[NatsBus]:
    """A connection to the bus for the length of the block; `credentials` is a file, or empty."""
    known = read_credentials(Path(credentials)) if credentials else Credentials()
    bus = await connect(url.split(","), credentials=known, name=name)
    try:
        yield bus
    finally:
        await bus.close()


@contextlib.asynccontextmanager
async def running(
    chosen: Sequence[Service[Any] | Server],
    bus: NatsBus,
    home: Home,
    *,
    scaled: Callable[[str], bool] | None = None,
) -> AsyncIterator[None]:
    """The services as tasks, from the moment all are ready until the block ends; positions are then written.

    `scaled`, given by a daemon, says whether processes of its own follow a service's lanes: its worker here then
    leaves them to those as long as there are any.
    """
    raise_limit()
    workers: list[Worker[Any]] = []
    tasks: list[asyncio.Task[None]] = []
    # one service that reads alone is better off with a consumer of its own lanes
    feed = Feed(bus, lane_subjects(range(LANES))) if len(chosen) > 1 else None
    async with feed or contextlib.nullcontext(), asyncio.TaskGroup() as group:
        readies = []
        for service in chosen:
            ready = asyncio.Event()
            readies.append(ready)
            if isinstance(service, Service):
                standby = partial(scaled, service.name) if scaled is not None else None
                worker: Worker[Any] = Worker(
                    service, bus, home, lanes=None, standby=standby, feed=feed, beside=len(chosen)
                )
                workers.append(worker)
                group.create_task(worker.run(ready), name=service.name)
            else:
                serve = _served(service, bus, home, ready, last=scaled is not None)
                tasks.append(group.create_task(serve, name=service.name))
        for ready in readies:
            await ready.wait()
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for worker in workers:
                worker.stop()


async def _served(service: Server, bus: NatsBus, home: Home, ready: asyncio.Event, *, last: bool) -> None:
    membership = Membership(home, service.name)
    await membership.join(last=last, single=service.single)
    beating = asyncio.create_task(_beating(membership, service.name))
    try:
        await service.serve(bus, home, ready)
    finally:
        beating.cancel()
        membership.leave()


async def _beating(membership: Membership, name: str) -> None:
    while True:
        membership.tell(serving(name))
        await asyncio.sleep(HEARTBEAT_S)


@contextlib.contextmanager
def signals(stop: Callable[[str], object]) -> Iterator[None]:
    """SIGTERM and SIGINT ask for a clean stop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, signal.Signals(number).name)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
