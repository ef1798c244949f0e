"""Who works for a service on this home: seats, heartbeats, and the lanes that follow from them.

A worker holds a seat: the kernel's lock on `run/workers/<service>-<seat>.json`, in which it writes its heartbeat
once a second. The dead are told by the lock, at once and for certain; the frozen by a beat that stands still for
`LEASE_S` of the clock of whoever looks. Nothing needs to be agreed upon: two workers that for a moment both hold a
lane to be theirs repeat work, since the lock on a view is the fence (ADR 2).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina.errors import Conflict
from lamina.home import Home, held
from lamina.ids import LANES
from lamina.log import get_logger
from lamina.runtime.lanes import SEATS, seat_key, share
from lamina.store.files import translated_os

HEARTBEAT_S = 1.0
LEASE_S = 3.0
"""A worker whose beat stood still for so long follows no lanes, as far as the others are concerned."""
BEAT_BYTES = 2_048
TRIES = 3
RETRY_S = 0.005
log = get_logger()


class Heartbeat(Struct, frozen=True, kw_only=True):
    """What a worker says of itself once a second. `standby`: it follows lanes only while nobody else does.

    `state`: starting, following, standby, or serving (a service that follows no lanes). `beat` counts.
    """

    service: str
    pid: int
    at_us: int
    lanes: int
    position: int = 0
    pending: int = 0
    applied: int = 0
    made: int = 0
    due: int = 0
    errors: int = 0
    last_error: str = ""
    seat: int = 0
    beat: int = 0
    standby: bool = False
    state: str = "following"


class Membership:
    """The seat of one worker, from `join` to `leave`, and what it sees of the others."""

    def __init__(self, home: Home, service: str, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._home = home
        self._service = service
        self._clock_s = clock_s
        self._handle: int | None = None
        self._beats = 0
        self._seen: dict[int, tuple[int, float]] = {}  # seat -> (its beat, when that was first seen)
        self._looked_at = 0.0
        self.seat = -1

    async def join(self, *, last: bool = False, single: str = "") -> None:
        """Take the lowest free seat, or the highest: who stands by leaves the even ones to the others. With `single`,
        the reason, there is one seat alone. `Conflict` where none is free."""
        seats = range(1) if single else range(SEATS)[::-1] if last else range(SEATS)
        with translated_os(seat_file(self._home, self._service, 0)):
            seat_file(self._home, self._service, 0).parent.mkdir(parents=True, exist_ok=True)
            for seat in seats:
                for _ in range(TRIES):  # somebody may be looking whether it is held, for a moment
                    handle = _locked(seat_file(self._home, self._service, seat))
                    if handle is not None:
                        self._handle, self.seat = handle, seat
                        return
                    await asyncio.sleep(RETRY_S)
        if single:
            raise Conflict(f"{self._service} runs on {self._home.path} and must not be doubled: {single}")
        raise Conflict(f"{SEATS} workers of {self._service} run on {self._home.path}: there is no room for more")

    def tell(self, beat: Heartbeat) -> None:
        """Write the next heartbeat in place: no name is made in a home that somebody is removing."""
        if self._handle is None:
            return
        self._beats += 1
        raw = msgspec.json.encode(replace(beat, seat=self.seat, beat=self._beats))
        with contextlib.suppress(OSError):  # a full disk shows in status by the heartbeat's age
            os.pwrite(self._handle, raw.ljust(BEAT_BYTES), 0)

    def lanes(self, *, standby: bool) -> frozenset[int]:
        """The lanes that are this worker's now, by who is alive."""
        if self._handle is None:
            return frozenset()
        now, live = self._clock_s(), {self.seat: standby}
        if now - self._looked_at > LEASE_S:
            self._seen.clear()  # it slept itself, and the others may have too
        self._looked_at = now
        for seat, beat in beats_of(self._home, self._service).items():
            if seat == self.seat:
                continue
            known = self._seen.get(seat)
            if known is None or known[0] != beat.beat:
                known = self._seen[seat] = (beat.beat, now)
            if now - known[1] < LEASE_S:
                live[seat] = beat.standby
        active = [seat for seat, stands_by in live.items() if not stands_by] or list(live)
        if self.seat not in active:
            return frozenset()
        return share(seat_key(self.seat), map(seat_key, active))

    def leave(self) -> None:
        """Give the seat back; the others see it at their next look."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


def seat_file(home: Home, service: str, seat: int) -> Path:
    return home.run / "workers" / f"{service}-{seat}.json"


def beats_of(home: Home, service: str) -> dict[int, Heartbeat]:
    """Seat -> the last heartbeat of the worker that holds it."""
    found: dict[int, Heartbeat] = {}
    for path in (home.run / "workers").glob(f"{service}-*.json"):
        seat = path.stem.removeprefix(f"{service}-")
        with contextlib.suppress(OSError, msgspec.MsgspecError):  # nobody's, or it stops just now
            if seat.isdigit() and path.stat().st_size and held(path):
                found[int(seat)] = msgspec.json.decode(path.read_bytes(), type=Heartbeat)
    return dict(sorted(found.items()))


def heartbeats(home: Home) -> list[Heartbeat]:
    """All workers of this home that are alive, by service and seat."""
    names = {path.stem.rpartition("-")[0] for path in (home.run / "workers").glob("*-*.json")}
    return [beat for name in sorted(names) for beat in beats_of(home, name).values() if beat.service == name]


def serving(service: str) -> Heartbeat:
    """The heartbeat of a worker that follows no lanes, and answers for all of them."""
    now_us = time.time_ns() // 1000
    return Heartbeat(service=service, pid=os.getpid(), at_us=now_us, lanes=LANES, state="serving")


def _locked(path: Path) -> int | None:
    """A handle that holds the lock on the file; None where somebody else does."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
