"""`lamina up`: a supervised server, the stream, and every service, under one lock a home."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from importlib.metadata import version
from typing import Any

from msgspec import structs

from lamina.bus.monitor import monitored
from lamina.bus.nats import NatsBus
from lamina.bus.server import Server as NatsServer
from lamina.bus.stream import default_max_bytes, ensure_stream
from lamina.config import Config, keep_of
from lamina.daemon.running import connected, running, signals
from lamina.daemon.scale import service_named
from lamina.daemon.supervisor import Supervisor
from lamina.errors import LaminaError, Transient
from lamina.home import Home, Lock, Runtime
from lamina.log import get_logger
from lamina.runtime.refill import refill, refilled
from lamina.runtime.registry import Server, fold_services, services
from lamina.runtime.spec import Service
from lamina.runtime.trim import keeping
from lamina.runtime.worker import touch_subject

LOOK_S = 1.0
MEND_S = 5.0
WRITE_ERROR = "write error"
ROOM_BYTES = 8 * 1024 * 1024
"""With less free space a new server would fail as the old one did."""
log = get_logger()


class Daemon:
    """One a home. `run` returns after `stop`, a signal, idleness, or when the home is gone."""

    def __init__(self, home: Home, config: Config, *, idle_exit_s: float | None = None) -> None:
        self._home = home
        self._config = config
        self._idle_exit_s = idle_exit_s
        self._stop = asyncio.Event()
        self._child: NatsServer | None = None
        command = (sys.executable, "-m", "lamina.cli", "--home", str(home.path), "worker")
        self._supervisor = Supervisor(home, command)
        self._mended_at = 0.0
        self._grants_us = 0
        self.why_stopped = ""

    def stop(self, why: str) -> None:
        if not self._stop.is_set():
            self.why_stopped = why
            self._stop.set()

    async def run(self, ready: Callable[[Runtime], None]) -> None:
        """Start everything, call `ready` once clients can connect, serve, and stop cleanly.

        `Conflict` when another daemon has this home; whatever start-up raises is raised here.
        """
        self._home.prepare()
        lock = Lock(self._home.daemon_lock)
        lock.require(f"another `lamina up` runs on {self._home.path}")
        try:
            async with contextlib.AsyncExitStack() as stack:
                url, monitor_url, credentials = await self._server(stack)
                bus = await stack.enter_async_context(connected(url, credentials, "lamina-daemon"))
                limit = self._config.bus.max_bytes or None
                await ensure_stream(
                    bus,
                    max_bytes=limit,
                    default=default_max_bytes(self._home.path),
                    replicas=self._config.bus.replicas,
                )
                spaces = await refill(self._home, bus)
                scaled = self._supervisor.scaled
                await stack.enter_async_context(running(self._chosen(), bus, self._home, scaled=scaled))
                await stack.enter_async_context(self._keeping(bus))
                runtime = Runtime(
                    pid=os.getpid(),
                    started_us=time.time_ns() // 1000,
                    url=url,
                    monitor_url=monitor_url,
                    credentials=credentials,
                    version=version("lamina"),
                )
                self._home.write_runtime(runtime)
                stack.callback(self._home.clear_runtime, os.getpid())
                await stack.enter_async_context(self._supervisor.running())
                with signals(self.stop):
                    ready(runtime)
                    await self._refilled(bus, spaces)
                    log.info("daemon_ready", home=str(self._home.path), url=url)
                    await self._until_stopped(runtime, lock)
                log.info("daemon_stops", why=self.why_stopped)
        finally:
            lock.release()

    @contextlib.asynccontextmanager
    async def _keeping(self, bus: NatsBus) -> AsyncIterator[None]:
        """Keep the log to its tail, where the configuration says so, until the block ends."""
        if not self._config.bus.keep:
            yield
            return
        folding = [service.name for service in self._chosen() if isinstance(service, Service)]
        task = asyncio.create_task(keeping(self._home, bus, keep_of(self._config.bus.keep), folding), name="trim")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _refilled(self, bus: NatsBus, spaces: Sequence[str]) -> None:
        """Let the views of refilled spaces be made again, and drop the old ledgers once the new ones are whole."""
        left = list(spaces)
        while left and not self._stop.is_set():
            for space in left:
                for name in fold_services():
                    await bus.notify(touch_subject(name, space), b"")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._stop.wait()
            left = [space for space in left if not await asyncio.to_thread(refilled, self._home, space)]

    async def _server(self, stack: contextlib.AsyncExitStack) -> tuple[str, str, str]:
        """URL, monitor URL and credentials file of the server: a given one, or a child of ours."""
        if self._config.bus.url:
            return self._config.bus.url, "", self._config.bus.credentials
        server = NatsServer(self._home.path, changed=lambda state, text: log.info("server", state=state, text=text))
        self._grants_us = server.grants.changed_us()
        await server.start()
        stack.push_async_callback(server.stop)
        self._child = server
        return server.url, server.monitor_url, str(server.credentials_file)

    def _chosen(self) -> list[Service[Any] | Server]:
        installed = services()
        wanted = self._config.daemon.services or tuple(installed)
        return [service_named(name) for name in wanted]

    async def _until_stopped(self, runtime: Runtime, lock: Lock) -> None:
        idle_since = time.monotonic()
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._stop.wait()
            if not lock.in_place:  # the folder alone tells nothing: somebody may have made it again
                self.stop("the home is gone")
            monitor_url = self._child.monitor_url if self._child is not None else ""
            if self._child is not None and not self._stop.is_set():
                runtime = self._told(runtime, self._child)
                self._granted(self._child)
                await self._mend(self._child)
            if monitor_url and not (self._home.bus / "credentials.json").exists():
                self.stop("the bus folder is gone; the next start refills the log from the ledgers")
            if self._idle_exit_s is not None and monitor_url:
                if await _clients(monitor_url) > self._supervisor.alive:
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since > self._idle_exit_s:
                    self.stop(f"nobody was connected for {self._idle_exit_s:.0f} s")

    def _granted(self, server: NatsServer) -> None:
        """Users that were added or revoked since the last look count from now on."""
        now = server.grants.changed_us()
        if now != self._grants_us:
            try:
                server.reload()
            except (LaminaError, OSError) as error:
                log.warning("grants_not_loaded", error=str(error))  # said again at the next look
                return
            self._grants_us = now
            log.info("grants_loaded", users=len(server.grants.load()))

    def _told(self, runtime: Runtime, server: NatsServer) -> Runtime:
        """The runtime file says where the server is now: started again, its ports may be others."""
        now = structs.replace(runtime, url=server.url, monitor_url=server.monitor_url)
        if now != runtime:
            try:
                self._home.write_runtime(now)
            except LaminaError as error:
                log.warning("runtime_not_written", error=str(error))  # tried again at the next look
                return runtime
        return now

    async def _mend(self, server: NatsServer) -> None:
        """After a full disk nats-server writes no more, also when there is room again, until it is started anew."""
        if time.monotonic() - self._mended_at < MEND_S or server.pid is None:
            return
        self._mended_at = time.monotonic()
        try:
            health = await monitored(server.monitor_url, "/healthz")
            free = shutil.disk_usage(server.folder).free
        except (Transient, OSError):
            return  # its supervisor looks after one that does not answer, and we after a home that is gone
        if WRITE_ERROR in str(health.get("error", "")) and free > ROOM_BYTES and server.pid is not None:
            log.warning("server_restarted", why=health["error"], free_bytes=free)
            os.kill(server.pid, signal.SIGTERM)


async def _clients(monitor_url: str) -> int:
    """Connections to the server besides the daemon's own; 1 when it does not tell (better to stay up)."""
    try:
        connections = await monitored(monitor_url, "/connz?limit=64")
    except Transient:
        return 1
    return sum(1 for one in connections.get("connections", ()) if one.get("name") != "lamina-daemon")
