"""What `Memory.open` gives before it is open."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Any

from lamina import config, ids
from lamina.client.link import Link
from lamina.client.memory import Memory
from lamina.client.redact import Redactor
from lamina.errors import Invalid
from lamina.home import Home


class Opening:
    """What `Memory.open` gives: enter it (`async with`) or await it; whoever awaits it closes the `Memory`."""

    def __init__(self, space: str, home: Home, url: str | None, agent: str, project: str) -> None:
        if not isinstance(space, str) or not space:
            raise Invalid("a space is needed: the name of the user, agent or project whose memory this is")
        for value in (space, agent, project):
            ids.token(value)
        if url is not None and not isinstance(url, str):
            raise Invalid(f"url must be text such as nats://127.0.0.1:4222, not {type(url).__name__}")
        self._arguments = (space, agent, project)
        self._home = home
        self._url = url
        self._memory: Memory | None = None

    async def open(self) -> Memory:
        settings = config.load(self._home.config)
        link = Link(
            self._home,
            url=self._url or settings.bus.url,
            credentials=settings.bus.credentials,
            outbox_bytes=settings.outbox.max_bytes,
        )
        try:
            await link.open()
        except BaseException:
            await link.close()
            raise
        space, agent, project = self._arguments
        redactor = Redactor(settings.offload.redact)
        self._memory = Memory(link, space=space, agent=agent, project=project, redactor=redactor)
        return self._memory

    def __await__(self) -> Generator[Any, None, Memory]:
        return self.open().__await__()

    async def __aenter__(self) -> Memory:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._memory is not None:
            await self._memory.close()
