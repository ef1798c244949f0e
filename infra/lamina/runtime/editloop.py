"""The edit loop of a service: notices what people changed in its rendered files, and makes an event of it, once."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from lamina import events
from lamina.bus import Bus
from lamina.errors import LaminaError
from lamina.home import Home
from lamina.ids import derived_id, event_subject, untoken
from lamina.log import get_logger
from lamina.runtime import edits
from lamina.runtime.history import space_subject
from lamina.runtime.sealing import intact, seal_of, sealed
from lamina.runtime.spec import Base, Editing, Service
from lamina.runtime.views import Views
from lamina.store.files import write_atomic
from lamina.times import aware

LOOK_S = 2.0
SPACES_A_LOOK = 200
"""Of many spaces these are looked at in turn, so that a look costs little."""
log = get_logger()
_Stamp = tuple[int, int, int]


class EditLoop:
    """Of one worker. Two that notice the same edit make the same event."""

    def __init__(self, service: Service[Any], editing: Editing, bus: Bus, views: Views[Any], home: Home) -> None:
        self._service = service
        self._editing = editing
        self._bus = bus
        self._views = views
        self._home = home
        self._seen: dict[tuple[str, str], _Stamp] = {}
        self._published: set[str] = set()
        self._spaces: Iterator[str] = iter(())
        self._looking = asyncio.Lock()
        self.noticed = 0

    async def run(self, caught_up: asyncio.Event) -> None:
        """Look until cancelled, from the moment the views have seen the end of the log."""
        await caught_up.wait()
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look at some spaces: at all of them where they are few. One look at a time."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        for space in await asyncio.to_thread(self._next):
            for path in await asyncio.to_thread(self._changed, space):
                try:
                    await self._handle(space, path)
                except (LaminaError, OSError) as error:
                    self._seen.pop((space, path), None)
                    why = f"{type(error).__name__}: {error}"
                    log.warning("edit_put_off", service=self._service.name, space=space, path=path, error=why)

    def _next(self) -> list[str]:
        found: list[str] = []
        for _ in range(2):
            for space in self._spaces:
                found.append(space)
                if len(found) == SPACES_A_LOOK:
                    return found
            if found:
                return found
            with contextlib.suppress(FileNotFoundError):
                self._spaces = iter(sorted(one.name for one in os.scandir(self._home.spaces) if one.is_dir()))
        return found

    def _changed(self, space: str) -> list[str]:
        """The files that are not as they were at the last look, or are gone; all at the first."""
        root = self._home.spaces / space
        now: dict[str, _Stamp] = {}
        for path in edits.files(root, self._editing.files):
            with contextlib.suppress(OSError):
                stat = os.lstat(root / path)
                now[path] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        gone = [path for known, path in self._seen if known == space and path not in now]
        for path in gone:
            del self._seen[space, path]
        changed = [path for path, stamp in now.items() if self._seen.get((space, path)) != stamp]
        self._seen.update({(space, path): now[path] for path in changed})
        kept = [path for path in now if path not in changed and edits.aside(root, path)]
        return [*gone, *changed, *kept]

    async def _handle(self, space: str, path: str) -> None:
        root = self._home.spaces / space
        for kept in await asyncio.to_thread(edits.aside, root, path):
            found = await asyncio.to_thread(edits.look, kept)
            taken = found is None or intact(found.data)
            if found is not None and not taken and not found.broken:
                taken = await self._edited(space, path, found) is not None
            if taken:
                await asyncio.to_thread(kept.unlink, missing_ok=True)
            else:
                await asyncio.to_thread(edits.beside, kept, root / path)
        found = await asyncio.to_thread(edits.look, root / path)
        if found is None:
            await self._put_back(space, path, None)
        elif found.broken or (not intact(found.data) and await self._edited(space, path, found)):
            await self._put_back(space, path, found)

    async def _edited(self, space: str, path: str, found: edits.Found) -> bool | None:
        """Make an event of an edited file; whether it says nothing that is not known already, None where the view
        knows no such file."""
        root = self._home.spaces / space
        last = await asyncio.to_thread(edits.noted, root, path)
        if last is not None and last.sha256 == found.sha256:
            return await self._publish(space, path, last)
        seal = seal_of(found.data)
        base = await self._base(space, path, seal)
        if base is None:
            return None  # a file of the person's own
        text, after = base.text, ""
        if last is not None and last.seal == seal:
            text, after = last.text, last.event  # it was edited further, before it was written anew
        change = edits.difference(text, edits.read(found.data))
        if not base.exact and not after:
            change = edits.Difference((), change.added, change.under)
        if not change.removed and not change.added:
            return True
        data = events.TYPES[self._editing.type](path=path, **msgspec.structs.asdict(change))
        event = events.make(
            data,
            id=derived_id("edited", untoken(space), path, base.edits, after, found.sha256),
            space=untoken(space),
            time=aware(None),
        )
        one = edits.Noted(
            sha256=found.sha256,
            seal=seal,
            text=edits.read(found.data),
            event=event.id,
            type=event.type,
            raw=events.encode(event).decode(),
        )
        await asyncio.to_thread(edits.note, root, path, one)
        await self._publish(space, path, one)
        self.noticed += 1
        return False

    async def _publish(self, space: str, path: str, one: edits.Noted) -> bool:
        """Publish an edit that was noted, once in the life of this process; whether it was folded long ago, and the
        file was not written since."""
        if one.event not in self._published:
            ack = await self._bus.publish(event_subject(space, one.type), one.raw.encode(), id=one.event)
            self._published.add(one.event)
            if one.seq != ack.seq:
                one = msgspec.structs.replace(one, seq=ack.seq)
                await asyncio.to_thread(edits.note, self._home.spaces / space, path, one)
            self._seen.pop((space, path), None)  # looked at again: it is to be written anew
            return False
        return True

    async def _base(self, space: str, path: str, seal: str) -> Base | None:
        last = await self._bus.last(space_subject(space))
        if last is None:
            return None
        async with self._views.hold(space, until=last.seq + 1) as view, view.lock:
            await view.catch_up(last.seq + 1)
            return await view.view.read(lambda db: self._editing.base(db, path, seal))

    async def _put_back(self, space: str, path: str, found: edits.Found | None) -> None:
        """Write the file as the view has it; what is broken is kept beside it, what the view does not know stays."""
        root = self._home.spaces / space
        base = await self._base(space, path, "")
        if base is None:
            return
        full = root / path

        def write(_: Any) -> None:
            now = edits.look(full)
            if now is not None and (found is None or now != found):
                return  # changed since: looked at again
            if found is not None and found.broken:
                kept = edits.beside(full, full)
                log.warning("edit_broken", space=space, path=path, why=found.broken, kept=kept.name)
            write_atomic(full, sealed(base.text))

        last = await self._bus.last(space_subject(space))
        async with self._views.use(space, until=last.seq + 1 if last else 0) as view:
            await view.view.transaction(write)
