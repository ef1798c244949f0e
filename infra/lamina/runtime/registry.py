"""Which services there are: the entry-point group `lamina.services`, ours and strangers' alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.bus import Bus
from lamina.errors import Invalid
from lamina.home import Home
from lamina.runtime.spec import Service

GROUP = "lamina.services"
Serve: TypeAlias = Callable[[Bus, Home, asyncio.Event], Awaitable[None]]


class Server(Struct, frozen=True, kw_only=True):
    """A service that folds nothing and answers others; `serve` runs until it is cancelled and sets the event
    once it answers. `single`: why it must not run twice; empty where it may."""

    name: str
    serve: Serve
    single: str = ""


@cache
def services() -> dict[str, Service[Any] | Server]:
    """Name -> service, in the order of their names. `Invalid` when one cannot be made."""
    found: dict[str, Service[Any] | Server] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        made = point.load()()
        if not isinstance(made, Service | Server) or made.name != point.name:
            raise Invalid(f"entry point {point.name} = {point.value} in {GROUP} does not give a service of that name")
        found[point.name] = made
    return found


def fold_services() -> dict[str, Service[Any]]:
    """The services that keep a view."""
    return {name: service for name, service in services().items() if isinstance(service, Service)}
