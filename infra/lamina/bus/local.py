"""A home's own bus in one step: the supervised server, a connection to it, and the stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lamina.bus.nats import NatsBus, connect
from lamina.bus.server import Server
from lamina.bus.stream import default_max_bytes, ensure_stream


@asynccontextmanager
async def local_bus(
    home: Path,
    *,
    max_bytes: int | None = None,
    changed: Callable[[str, str], None] | None = None,
) -> AsyncIterator[tuple[Server, NatsBus]]:
    """Run the bus of `home` for the length of the block; errors as `Server.start`, `connect`, `ensure_stream`.

    A standing stream keeps its limit where `max_bytes` is None; a new one gets the smaller of 8 GiB and half
    the free disk.
    """
    server = Server(home, changed=changed)
    await server.start()
    try:
        bus = await connect(server.url, credentials=server.credentials, name="lamina-daemon")
        try:
            await ensure_stream(bus, max_bytes=max_bytes, default=default_max_bytes(server.folder))
            yield server, bus
        finally:
            await bus.close()
    finally:
        await server.stop()
