"""How many worker processes of each service are wanted, and what became of them: two small files under `run/`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from lamina.config import Config
from lamina.errors import Conflict, Invalid
from lamina.home import Home, Lock
from lamina.runtime.lanes import SEATS
from lamina.runtime.registry import Server, services
from lamina.runtime.spec import Service
from lamina.store.files import write_atomic

MOST = SEATS - 1
"""One seat is the daemon's own."""


class Supervised(Struct, frozen=True, kw_only=True):
    """One worker process that a daemon looks after. `state`: starting, running, waiting (it ended by itself, and is
    started again at `retry_at_us`), crash loop (so again and again: `why` says what it said last), ending."""

    service: str
    n: int
    state: str
    pid: int = 0
    restarts: int = 0
    why: str = ""
    retry_at_us: int = 0


def service_named(name: str) -> Service[Any] | Server:
    """The installed service `name`; `Invalid` lists them."""
    installed = services()
    if name not in installed:
        raise Invalid(f"unknown service {name!r}; there are: {', '.join(installed)}")
    return installed[name]


def why_single(service: Service[Any] | Server, config: Config) -> str:
    """Why a service must not run twice, as this home is configured; empty where it may."""
    if isinstance(service, Service) and service.configure is not None:
        service = service.configure(config)
    return service.single


def scale(home: Home, config: Config, name: str, n: int) -> None:
    """From now on `n` worker processes of a service are wanted; 0: it runs inside the daemon.

    A daemon that runs sees it within a second, the next one at its start. `Invalid` for an unknown service or a
    number out of 0 to 63, `Conflict` for a service that must not be doubled, naming why.
    """
    service = service_named(name)
    if not 0 <= n <= MOST:
        raise Invalid(f"{n} is no number of workers; at least 0 (inside the daemon) and at most {MOST} run")
    why = why_single(service, config)
    if n and why:
        raise Conflict(f"{name} must not be doubled: {why}")
    home.prepare()
    lock = Lock(home.run / "scale.lock")
    lock.take(wait=True)
    try:
        write_atomic(home.run / "scale.json", msgspec.json.encode({**wanted(home), name: n}))
    finally:
        lock.release()


def wanted(home: Home) -> dict[str, int]:
    """Service -> how many worker processes are wanted. `Invalid` where the file was broken by hand."""
    path = home.run / "scale.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, int])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise Invalid(f"{path} is malformed ({error}): remove it, then `lamina scale` again") from error
    return {name: min(max(n, 0), MOST) for name, n in found.items()}


def supervised(home: Home) -> list[Supervised]:
    """What the daemon says of the worker processes it looks after."""
    try:
        return msgspec.json.decode((home.run / "supervised.json").read_bytes(), type=list[Supervised])
    except (FileNotFoundError, msgspec.MsgspecError):
        return []


def tell_supervised(home: Home, states: list[Supervised]) -> None:
    write_atomic(home.run / "supervised.json", msgspec.json.encode(states))
