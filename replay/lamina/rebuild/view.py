"""One view, made again: a new generation is filled beside the live one and takes its place in one step.

The live one goes on meanwhile. At the end its lock is taken for a moment: nothing can be written to it, what it
has beyond the new one is folded, and the link is moved. So no reader ever sees less than it saw before. Nothing is
decided and no model is asked: a rebuild folds, and that is all it can do.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from lamina.bus import Bus
from lamina.errors import Busy, LaminaError
from lamina.home import Home, Lock
from lamina.ids import untoken
from lamina.log import get_logger
from lamina.rebuild.progress import Moved, Progress, Rebuilt
from lamina.runtime.apply import read_meta, write_meta
from lamina.runtime.history import history, ledger_count, space_subject, trimmed
from lamina.runtime.open_view import OpenView
from lamina.runtime.spec import Service
from lamina.runtime.staged import StagedFiles
from lamina.runtime.worker import touch_subject
from lamina.store.driver import Connection, Damaged
from lamina.store.view import View, generation, generation_path, remove_generation, switch, unused_generation

BATCH = 2_000
NEAR = 200
"""So few events behind, the live view may be held: they are folded well before anybody's patience ends."""
CACHE_KIB = 32 * 1024
"""Pages of a large view that are held in memory: ids come in no order, and with few pages each costs a read."""
LOCK_S = 600.0
LOOK_S = 0.05
UNFINISHED = "rebuild"
log = get_logger()


async def rebuild_view(
    service: Service[Any],
    bus: Bus,
    home: Home,
    space: str,
    moved: Moved,
    *,
    anew: bool = False,
    made: set[str] | None = None,
) -> Rebuilt:
    """Make the view of `service` in `space` (a token) again and switch to it.

    Interrupted, the same call goes on where it stopped; `anew` takes nothing of what was left, and puts the paths of
    the files that there are after it into `made`. `Busy` when another process has been at it for ten minutes;
    otherwise raises as `Bus.read` and `View.open` do, and the live view stays.
    """
    root = home.spaces / space
    link = root / "views" / f"{service.name}.db"
    lock = Lock(link.with_name(f".{link.stem}.lock"))
    await _taken(lock, service.name)
    try:
        progress = Progress(service=service.name, space=untoken(space))
        progress.total = await asyncio.to_thread(ledger_count, root / "log")
        work = _Rebuild(service, bus, root, link, progress, moved)
        try:
            await work.open(anew=anew)
            await work.fill()
            rebuilt = await work.switch()
            if made is not None:
                made |= work.made
        except Damaged:
            await work.abandon()
            raise
        finally:
            await work.close()
    finally:
        lock.release()
    await bus.notify(touch_subject(service.name, space), b"")
    return rebuilt


class _Rebuild:
    """A generation that is being made."""

    def __init__(
        self, service: Service[Any], bus: Bus, root: Path, link: Path, progress: Progress, moved: Moved
    ) -> None:
        self._service = service
        self._bus = bus
        self._root = root
        self._link = link
        self._progress = progress
        self._moved = moved
        self._view: OpenView[Any] | None = None
        self._files: StagedFiles | None = None
        self._n = 0

    async def open(self, *, anew: bool) -> None:
        """Go on with what an interrupted rebuild left, or begin anew."""
        for n in _left(self._link):
            try:
                await self._open(n)
                if not anew and await self._opened.view.read(self._goes_on):
                    self._progress.resumed = self._progress.events
                    return
            except Damaged as error:
                log.warning("unfinished_rebuild_damaged", view=self._service.name, error=str(error))
            await self.abandon()
        await self._open(unused_generation(self._link))
        await self._opened.view.transaction(self._stamp)

    @property
    def made(self) -> set[str]:
        return self._staged.made

    @property
    def _opened(self) -> OpenView[Any]:
        assert self._view is not None  # noqa: S101 - `open` was called
        return self._view

    @property
    def _staged(self) -> StagedFiles:
        assert self._files is not None  # noqa: S101 - `open` was called
        return self._files

    async def _open(self, n: int) -> None:
        self._n = n
        view = View(self._link, self._service.tables, n=n)
        self._files = StagedFiles(self._root, self._bus.epoch, self._link.with_name(f".{self._link.stem}.{n}.files"))
        self._view = OpenView(self._service, self._bus, self._root.name, self._root, view, self._files)
        await view.open()
        await view.read(lambda db: db.execute(f"PRAGMA cache_size=-{CACHE_KIB}"))

    def _goes_on(self, db: Any) -> bool:
        """Is this generation one that a rebuild of this version and epoch left?"""
        folded = read_meta(db, UNFINISHED, None)
        mine = (read_meta(db, "version", None), read_meta(db, "epoch", None)) == self._identity
        self._progress.events = int(folded or 0)
        return folded is not None and mine

    @property
    def _identity(self) -> tuple[int, str]:
        return self._service.version, self._bus.epoch

    def _stamp(self, db: Any) -> None:
        for key, value in zip(("version", "epoch"), self._identity, strict=True):
            write_meta(db, key, value)
        write_meta(db, UNFINISHED, 0)

    async def fill(self) -> None:
        """Fold everything that is in the log, until only a few events are left, or as many arrive as are folded."""
        left = 1 << 62
        while True:
            before = self._progress.events
            await self._fold(await self._end())
            folded = self._progress.events - before
            if folded < NEAR or folded >= left:
                return
            left = folded

    async def _end(self) -> int:
        """The seq behind the last event of the space; without any in the log, whatever the ledger holds counts."""
        last = await self._bus.last(space_subject(self._root.name))
        return last.seq + 1 if last is not None else trimmed(self._root, self._bus.epoch) + 1

    async def _fold(self, until: int) -> None:
        view = self._opened
        cursor = await view.cursor()
        name = f"{self._service.name}-rebuild"
        parts = history(self._bus, self._root, after=cursor.seq, until=until, name=name, batch=BATCH)
        async with contextlib.aclosing(parts):
            async for messages in parts:
                await view.fold(messages)
                self._progress.events += len(messages)
                folded = self._progress.events
                await view.view.transaction(lambda db: write_meta(db, UNFINISHED, folded))  # noqa: B023 - awaited
                self._moved(self._progress)

    async def switch(self) -> Rebuilt:
        """Let the new generation take the place of the live one."""
        view, progress = self._opened, self._progress
        await view.checkpoint()
        files = await asyncio.to_thread(self._staged.place)  # most of them, while nobody waits
        async with _held(self._link):
            await self._fold(await self._end())
            files += await asyncio.to_thread(self._staged.place)
            await view.view.transaction(lambda db: db.execute("DELETE FROM meta WHERE key = ?", (UNFINISHED,)))
            view.dirty = True
            await view.checkpoint()
            switch(self._link, self._n)
        cursor = await view.cursor()
        dead = await view.view.read(lambda db: int(db.execute("SELECT count(*) FROM dead").fetchone()[0]))
        return Rebuilt(
            service=progress.service,
            space=progress.space,
            generation=self._n,
            seq=cursor.seq,
            events=progress.events,
            resumed=progress.resumed,
            files=files,
            dead=dead,
            seconds=round(progress.seconds, 3),
            rate=round(progress.rate, 1),
        )

    async def abandon(self) -> None:
        """Remove what was made."""
        await self.close()
        remove_generation(self._link, self._n)
        self._staged.discard()

    async def close(self) -> None:
        if self._view is not None:
            await self._view.close()
            self._view = None


def _left(link: Path) -> list[int]:
    """Generations above the live one, newest first: what interrupted rebuilds left."""
    found = link.parent.glob(f"{link.stem}.*.db")
    numbers = {path.name.removeprefix(f"{link.stem}.").split(".")[0] for path in found}
    return sorted((int(n) for n in numbers if n.isdigit() and int(n) > generation(link)), reverse=True)


async def _taken(lock: Lock, service: str) -> None:
    until = time.monotonic() + LOCK_S
    while not lock.take():
        if time.monotonic() > until:
            raise Busy(f"{service}: process {lock.holder()} has been rebuilding this view for {LOCK_S:.0f} s")
        await asyncio.sleep(LOOK_S)


@contextlib.asynccontextmanager
async def _held(link: Path) -> AsyncIterator[None]:
    """Keep everybody from writing to the live view for the length of the block. One that is gone or damaged, which
    nobody can write to, is not held."""
    n = generation(link)
    path = generation_path(link, n)
    if not n or not path.exists():
        yield
        return
    live = Connection(path, readonly=False)
    try:
        try:
            await live.open()
            await live.run(lambda db: db.execute("BEGIN IMMEDIATE"))
        except LaminaError as error:
            if isinstance(error, Busy):
                raise
            log.warning("live_view_unreadable", view=link.stem, error=str(error))
            yield
            return
        try:
            yield
        finally:
            with contextlib.suppress(LaminaError):  # it was replaced, and closing it ends the transaction too
                await live.run(lambda db: db.execute("ROLLBACK"))
    finally:
        await live.close()
