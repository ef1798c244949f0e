"""A daemon in the test's own event loop, on a home of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from lamina.config import Config
from lamina.daemon import Daemon
from lamina.home import Home, Runtime


@contextlib.asynccontextmanager
async def daemon(home: Home, config: Config | None = None) -> AsyncIterator[Daemon]:
    """Up when the block begins, cleanly down when it ends; what it raises is raised here."""
    ready: asyncio.Future[Runtime] = asyncio.get_running_loop().create_future()
    running = Daemon(home, config or Config())
    task = asyncio.create_task(running.run(ready.set_result))
    try:
        either: set[asyncio.Future[Any]] = {task, ready}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield running
    finally:
        running.stop("the test is over")
        await task
