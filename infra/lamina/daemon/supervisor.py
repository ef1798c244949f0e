"""The worker processes of a daemon: as many as `lamina scale` asks for, started again when they end by themselves.

A worker that was killed has lost nothing: its positions are behind its views, and whoever follows its lanes next
folds the rest. So it is started again at once, then later and later; one that ends again and again is said to be in
a crash loop and tried on, while the daemon's own worker or the others follow its lanes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence

from lamina.bus.process import dying_with_us, end_stale
from lamina.daemon.scale import Supervised, supervised, tell_supervised, wanted
from lamina.errors import LaminaError
from lamina.home import Home
from lamina.log import get_logger
from lamina.runtime.membership import beats_of
from lamina.runtime.registry import services

LOOK_S = 0.5
STOP_S = 4.0
"""So long a worker that is to end has for the batch it is at; then it is killed, which loses nothing either."""
BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STABLE_S = 30.0
"""A worker that lived so long begins the back-off anew."""
CRASHES = 3
"""So many ends in a row, each within `STABLE_S`, are a crash loop."""
FROZEN_S = 30.0
"""A worker whose heartbeat stood still so long is killed: its lanes are others' by now, a view it locked is not."""
TAIL_BYTES = 4_096
log = get_logger()


class Supervisor:
    """Of one daemon. `command` is put before the name of a service."""

    def __init__(self, home: Home, command: Sequence[str]) -> None:
        self._home = home
        self._command = tuple(command)
        self._wanted: dict[str, int] = {}
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._states: dict[tuple[str, int], Supervised] = {}
        self._told: list[Supervised] = []
        self._beats: dict[int, tuple[int, float]] = {}  # pid -> (its beat, when that was first seen)

    def scaled(self, service: str) -> bool:
        """Do worker processes follow this service's lanes, so that the daemon's own worker stands by?"""
        return self._wanted.get(service, 0) > 0

    @property
    def alive(self) -> int:
        """How many worker processes there are now."""
        return sum(bool(one.pid) for one in self._states.values())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look after the workers for the length of the block; in the end they stop, all at once, within 4 s."""
        for old in supervised(self._home):  # of a daemon that was killed
            await end_stale(old.pid, self._marker(old.service), STOP_S)
        self._look()
        looking = asyncio.create_task(self._looking(), name="supervisor")
        try:
            yield
        finally:
            looking.cancel()
            self._wanted = {}
            tasks = {looking, *self._tasks.values(), *self._ending}
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._tell()

    async def _looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._look()
            self._end_frozen()

    def _look(self) -> None:
        """Start what is wanted and is not there, end what is there and not wanted any more."""
        try:
            self._wanted = {name: n for name, n in wanted(self._home).items() if name in services()}
        except LaminaError as error:
            log.warning("scale_unreadable", error=str(error))
            return
        slots = {(service, n) for service, count in self._wanted.items() for n in range(count)}
        for slot in self._tasks.keys() - slots:
            task = self._tasks.pop(slot)
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        for slot in sorted(slots - self._tasks.keys()):
            if slot not in self._states:  # the one before it has ended
                self._tasks[slot] = asyncio.create_task(self._keep(*slot), name=f"worker-{slot[0]}-{slot[1]}")
        self._tell()

    async def _keep(self, service: str, n: int) -> None:
        """One worker process, again and again, until cancelled."""
        state = Supervised(service=service, n=n, state="starting")
        failures = restarts = 0
        try:
            while True:
                since = time.monotonic()
                code, said = await self._once(service, n, state)
                failures = 0 if time.monotonic() - since > STABLE_S else failures + 1
                restarts += 1
                wait_s = BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)]
                why = f"{_ended(code)}{f': {said}' if said else ''}"
                looping = failures >= CRASHES
                (log.error if looping else log.warning)(
                    "worker_crash_loop" if looping else "worker_ended",
                    **{"service": service, "n": n, "why": why, "in_a_row": failures, "again_in_s": wait_s},
                )
                state = Supervised(
                    service=service,
                    n=n,
                    state="crash loop" if looping else "waiting",
                    restarts=restarts,
                    why=why,
                    retry_at_us=time.time_ns() // 1000 + int(wait_s * 1e6),
                )
                self._set(state)
                await asyncio.sleep(wait_s)
        finally:
            self._states.pop((service, n), None)

    async def _once(self, service: str, n: int, before: Supervised) -> tuple[int, str]:
        """Run a worker to its end: its exit code and its last words. Cancelled, it ends it first."""
        try:
            child = await asyncio.create_subprocess_exec(
                *dying_with_us([*self._command, service]),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=PIPE,
                start_new_session=True,  # a Ctrl-C at the terminal is the daemon's to handle
            )
        except OSError as error:
            return -1, f"it cannot be started: {error}"
        looping = before.state == "crash loop"
        self._set(
            Supervised(
                service=service,
                n=n,
                state="crash loop" if looping else "running",
                pid=child.pid,
                restarts=before.restarts,
                why=before.why,
            )
        )
        try:
            said = await _heard(child)
            return await child.wait(), said
        finally:
            if child.returncode is None:
                await self._end(child)
            self._beats.pop(child.pid, None)

    async def _end(self, child: Process) -> None:
        child.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await _heard(child)
                await child.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    def _end_frozen(self) -> None:
        now = time.monotonic()
        pids = {one.pid for one in self._states.values() if one.pid}
        for service in {one.service for one in self._states.values() if one.pid}:
            for beat in beats_of(self._home, service).values():
                known = self._beats.get(beat.pid)
                if beat.pid not in pids:
                    continue
                if known is None or known[0] != beat.beat:
                    self._beats[beat.pid] = (beat.beat, now)
                elif now - known[1] > FROZEN_S:
                    log.error("worker_frozen", service=service, pid=beat.pid, still_s=round(now - known[1]))
                    del self._beats[beat.pid]
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(beat.pid, signal.SIGKILL)

    def _set(self, state: Supervised) -> None:
        self._states[state.service, state.n] = state
        self._tell()

    def _tell(self) -> None:
        states = [self._states[slot] for slot in sorted(self._states)]
        if states != self._told:
            try:
                tell_supervised(self._home, states)
            except LaminaError as error:
                log.warning("supervised_not_written", error=str(error))  # tried again at the next look
                return
            self._told = states

    def _marker(self, service: str) -> str:
        return " ".join([*self._command[1:], service])


async def _heard(child: Process) -> str:
    """Pass on what a child says on its standard error, until it ends; the last line that is no log line."""
    tail = b""
    while child.stderr is not None and (piece := await child.stderr.read(TAIL_BYTES)):
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(piece.decode("utf-8", "replace"))
            sys.stderr.flush()
        tail = (tail + piece)[-TAIL_BYTES:]
    lines = [line for line in tail.decode("utf-8", "replace").splitlines() if line.strip() and line[0] != "{"]
    return lines[-1][:300] if lines else ""


def _ended(code: int) -> str:
    if code >= 0:
        return f"it ended with code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"
