"""Bringing an archive back: its events are published again, with their ids and the times of their first arrival.

What the space holds already is left out, so restoring twice changes nothing. What was erased in the space, or in the
archive, is not brought back. Views and files are folded from the events, as ever.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw, structs

from lamina import events
from lamina.bus import Bus
from lamina.errors import Invalid
from lamina.events import MemoryForgotten
from lamina.export.archive import EVENTS
from lamina.export.check import checked, unpack
from lamina.export.records import Restored
from lamina.export.source import said
from lamina.home import Home
from lamina.ids import token
from lamina.runtime.history import Line, ledger_line
from lamina.runtime.history import checked as checked_line
from lamina.runtime.refill import named, republish


async def restore(home: Home, bus: Bus, path: Path, space: str | None = None) -> Restored:
    """Restore the archive at `path` into the space it is of, or into `space`.

    `Invalid` or `TooLarge` for what is no whole archive: then nothing was published. Interrupted, the same call does
    the rest. Raises as `Bus.publish_batch`.
    """
    manifest = await asyncio.to_thread(checked, path)
    name = manifest.space if space is None else space
    here = token(name)
    folder = Path(tempfile.mkdtemp(prefix="restore-", dir=home.run))
    try:
        await asyncio.to_thread(unpack, path, folder / "archive")
        known, erased = await _known(home, bus, here)
        lines = _Lines(folder / "archive" / EVENTS, manifest.space, name, known)
        lines.erased |= erased | await asyncio.to_thread(lines.forgotten)
        published = await republish(bus, here, lines, folder / "archive" / "blobs")
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return Restored(
        space=name,
        file=str(path),
        events=lines.count,
        published=published,
        known=lines.count - published - lines.left_out,
        forgotten=lines.left_out,
    )


async def _known(home: Home, bus: Bus, here: str) -> tuple[set[str], set[str]]:
    """What the space holds, and which events were erased in it."""
    known: set[str] = set()
    erased: set[str] = set()
    async for one in said(bus, home.spaces / here):
        known.add(named(one.message.data)[0])
        erased |= _erased(one.event)
    return known, erased


class _Lines:
    """The events of an archive as lines of the space that they go to."""

    def __init__(self, path: Path, source: str, name: str, known: set[str]) -> None:
        self._path = path
        self._source = source
        self._name = name
        self._known = known
        self.erased: set[str] = set()
        self.count = self.left_out = 0

    def forgotten(self) -> set[str]:
        """What the archive's own tombstones name."""
        found: set[str] = set()
        for line in self._read():
            found |= _erased(named(line.raw)[1])
        return found

    def __iter__(self) -> Iterator[Line]:
        for line in self._read():
            self.count += 1
            event = named(line.raw)[1]
            if event is not None and event.id in self.erased:
                self.left_out += 1
                continue
            moved = self._moved(line, event)
            if named(moved.raw)[0] not in self._known:
                yield moved

    def _read(self) -> Iterator[Line]:
        with self._path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                try:
                    line = ledger_line(raw)
                    checked_line(line)
                except Invalid as error:
                    raise Invalid(f"line {number} of the archive's events: {error}") from error
                yield line

    def _moved(self, line: Line, event: events.Event | None) -> Line:
        if event is None or line.malformed is not None or self._name == self._source:
            return line
        return structs.replace(line, event=Raw(events.encode(structs.replace(event, space=self._name))))


def _erased(event: events.Event | None) -> set[str]:
    """The ids that a tombstone names."""
    if event is None or event.type != "memory.forgotten":
        return set()
    return set(msgspec.json.decode(event.data, type=MemoryForgotten).ids)
