"""Is a home well? Faults that a person or a supervisor must act on, from one look and the ones before it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from lamina.cli.state import ServiceStatus, Status

STALL_S = 60.0
"""A service that is behind and has not moved for so long stalls."""
BEAT_S = 15.0
"""A worker without a sign of life for so long is frozen or gone."""


class Fault(Struct, frozen=True):
    """What is wrong: the part (`bus`, or a service), why, and what to do."""

    part: str
    why: str
    remedy: str


class Health(Struct, frozen=True, kw_only=True):
    """`status` is red while there are faults: until they are gone, do not send work here."""

    status: Literal["green", "red"]
    faults: tuple[Fault, ...] = ()


class Seen(Struct, frozen=True):
    """Where a service stood, and since when it has stood there (seconds of a clock that never goes back)."""

    position: int
    since_s: float


class Watch(Struct, frozen=True):
    """What is remembered between looks: where every service stood."""

    seen: Mapping[str, Seen] = field(default_factory=dict)


def judged(watch: Watch, status: Status, now_s: float, stall_s: float = STALL_S) -> tuple[Watch, Health]:
    """What one more look says, and what to remember for the next one."""
    faults: list[Fault] = []
    if status.bus.state != "up":
        why = status.bus.error or f"nothing runs on {status.bus.home}"
        faults.append(Fault("bus", f"{status.bus.state}: {why}", "`lamina up` starts it; see `lamina doctor`"))
        return Watch(), Health(status="red", faults=tuple(faults))
    seen: dict[str, Seen] = {}
    for service in status.services:
        position = max((worker.position or 0 for worker in service.workers), default=0)
        before = watch.seen.get(service.name)
        moved = before is None or before.position != position or not service.lag.events
        seen[service.name] = Seen(position, now_s if before is None or moved else before.since_s)
        faults += _faults(service, now_s - seen[service.name].since_s, stall_s)
    return Watch(seen), Health(status="red" if faults else "green", faults=tuple(faults))


def _faults(service: ServiceStatus, still_s: float, stall_s: float) -> list[Fault]:
    name = service.name
    if not service.workers:
        return [Fault(name, "nobody runs it", f"`lamina worker {name}` runs one, or let `lamina up` run it")]
    ages = [worker.beat_seconds for worker in service.workers if worker.beat_seconds is not None]
    if ages and min(ages) > BEAT_S:
        return [Fault(name, f"no sign of life for {min(ages):.0f} s", "its process is frozen: look at it, or end it")]
    if still_s >= stall_s:
        why = f"{service.lag.events} events behind, and has not moved for {still_s:.0f} s"
        cause = f"; its last error: {service.last_error}" if service.last_error else ""
        return [Fault(name, why + cause, "see `lamina status` and the log of the daemon")]
    return []
