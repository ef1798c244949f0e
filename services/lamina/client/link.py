"""A client's connection: opened to a daemon or a given server, regained when it moves, its outbox emptied."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from lamina import events
from lamina.bus import Ack, Bus, blobs
from lamina.bus.nats import Credentials, connect
from lamina.bus.server import read_credentials
from lamina.client.outbox import Outbox, Waiting, orphans
from lamina.client.start import daemon
from lamina.errors import Closed, Conflict, Denied, Full, LaminaError, Transient, Unavailable
from lamina.events import Blob, Event
from lamina.home import Home
from lamina.ids import node_id, space_of
from lamina.log import get_logger

LOOK_S = 0.5
CONNECT_S = 5.0
RESPAWN_S = 5.0
log = get_logger()


class Link:
    """Owns the bus and the outbox of one client. `publish` puts aside what the log cannot take now."""

    def __init__(self, home: Home, *, url: str, credentials: str, outbox_bytes: int) -> None:
        self._home = home
        self._given_url = url
        self._given_credentials = credentials
        self._url = ""
        self._bus: Bus | None = None
        self._max_bytes = outbox_bytes
        self.outbox = Outbox(home.outbox, max_bytes=outbox_bytes)
        self._tasks: list[asyncio.Task[None]] = []
        self._work = asyncio.Event()
        self._emptied = asyncio.Event()
        self._emptied.set()
        self._closed = False

    async def open(self) -> None:
        """Connect. A given server that is away is no error: events wait in the outbox until it is there."""
        self._home.prepare()
        try:
            await self._connect()
        except Transient:
            if not self._given_url:
                await self._connect()  # the daemon that was there may just have ended
        self._tasks = [asyncio.create_task(self._keep(), name="lamina-link")]
        self._work.set()

    @property
    def connected(self) -> bool:
        return not self._closed and self._bus is not None and self._bus.connected

    @property
    def bus(self) -> Bus:
        """The connection; `Unavailable` while there is none, `Closed` after `close`."""
        if self._closed:
            raise Closed("this Memory was closed; open another one")
        if self._bus is None or not self._bus.connected:
            self._work.set()
            raise Unavailable("no connection to the log; see `lamina status`")
        return self._bus

    async def publish(self, waiting: Waiting, contents: Sequence[tuple[Blob, bytes]]) -> Ack | None:
        """Publish an event after its blobs: the log's ack, or None when it was put into the outbox, fsynced."""
        if self._closed:
            raise Closed("this Memory was closed; open another one")
        if self.outbox.empty and self._emptied.is_set():
            try:
                bus = self.bus
                for blob, data in contents:
                    await blobs.put(bus, space_of(waiting.subject), data, media_type=blob.media_type)
                return await bus.publish(waiting.subject, bytes(waiting.event), id=waiting.id)
            except Transient as error:
                log.debug("publish_put_aside", id=waiting.id, error=str(error))
        self.outbox.put(waiting, [(blob.sha256, data) for blob, data in contents])
        self._emptied.clear()
        self._work.set()
        return None

    def waiting(self, node: str) -> tuple[Event, dict[str, bytes]] | None:
        """The tool result called `node`, with its blobs, if it waits in this client's outbox."""
        if self.outbox.empty:
            return None
        for waiting in self.outbox.waiting():
            if node_id(waiting.id) == node:
                blobs_ = {sha256: self.outbox.read_blob(sha256) for sha256 in waiting.blobs}
                return events.decode(bytes(waiting.event)), blobs_
        return None

    async def emptied(self) -> None:
        """Return once nothing waits in the outbox. The caller sets the deadline."""
        self._work.set()
        await self._emptied.wait()

    async def _connect(self) -> None:
        url, credentials = self._given_url, self._given_credentials
        if not url:
            runtime = await daemon(self._home)
            url, credentials = runtime.url, runtime.credentials
        if self._bus is not None:
            await self._bus.close()
            self._bus = None
        known = read_credentials(Path(credentials)) if credentials else Credentials()
        self._bus = await connect(url.split(","), credentials=known, name="lamina-client", timeout_s=CONNECT_S)
        self._url = url

    async def _keep(self) -> None:
        """Look after the connection and the outbox whenever there is reason to, and now and then."""
        adopted = False
        while True:
            waiting = not self.outbox.empty or (self._bus is None) or not self._bus.connected or not adopted
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S if waiting else None):
                    await self._work.wait()
            self._work.clear()
            try:
                await self._regain()
                await self._empty(self.outbox)
                if not adopted:
                    for orphan in orphans(self._home.outbox, self._max_bytes):
                        try:
                            await self._empty(orphan)
                        finally:
                            orphan.close()
                    adopted = True
            except (Transient, Full) as error:
                log.debug("link_waits", error=str(error))
                await asyncio.sleep(LOOK_S)
            except (LaminaError, OSError) as error:
                log.warning("link_failed", error=f"{type(error).__name__}: {error}")
                await asyncio.sleep(RESPAWN_S)

    async def _regain(self) -> None:
        """The bus reconnects by itself to where it was; a daemon that moved or ended needs us."""
        if self._bus is not None and self._bus.connected:
            return
        if self._bus is not None and self._given_url:
            raise Unavailable("the server is away")
        runtime = self._home.runtime()
        if self._bus is None or runtime is None or runtime.url != self._url:
            await self._connect()
        else:
            raise Unavailable("the daemon is there, its server is not yet")

    async def _empty(self, outbox: Outbox) -> None:
        await outbox.drain(self._deliver)
        if outbox is self.outbox and outbox.empty:
            self._emptied.set()

    async def _deliver(self, waiting: Waiting, outbox: Outbox) -> None:
        bus = self.bus
        for sha256 in waiting.blobs:
            data = await asyncio.to_thread(outbox.read_blob, sha256)
            await blobs.put(bus, space_of(waiting.subject), data)
        ack = await bus.publish(waiting.subject, bytes(waiting.event), id=waiting.id)
        if ack.duplicate:
            with contextlib.suppress(Denied):  # credentials of one space; the views keep the first of an id
                await check_same(bus, ack.seq, events.decode(bytes(waiting.event)))

    async def close(self) -> None:
        """Publish what waits if that is quickly done, and let go; what is left waits on disk."""
        if self._closed:
            return
        try:
            if not self._emptied.is_set() and self._bus is not None and self._bus.connected:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CONNECT_S):
                        await self.emptied()
        finally:
            self._closed = True
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._bus is not None:
                await self._bus.close()
            self.outbox.close()


async def check_same(bus: Bus, seq: int, event: Event) -> None:
    """`Conflict` when the log holds something else at `seq`, where it says that it has this event already."""
    stored = await bus.get(seq)
    if stored is not None and events.decode(stored.data).sha256 != event.sha256:
        raise conflict(event)


def conflict(event: Event) -> Conflict:
    return Conflict(
        f"{event.type} {event.id} in session {event.session!r} was published before with other content: "
        "give the new one an id of its own"
    )
