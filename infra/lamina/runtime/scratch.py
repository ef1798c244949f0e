"""A view folded beside the live one, to be compared with it or read, and thrown away: nothing of the space changes.

Folded up to a seq of long ago, it is the memory as it was known then.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from lamina import events
from lamina.bus import Bus
from lamina.bus import blobs as bus_blobs
from lamina.runtime.open_view import OpenView
from lamina.runtime.spec import Append, DropFile, Service, WriteFile
from lamina.runtime.staged import DROPPED, WRITTEN, StagedFiles
from lamina.store.view import View


class ScratchFiles(StagedFiles):
    """Files that are never placed: what is staged in the end is what differs. The ledger is left alone."""

    def apply(self, changes: Sequence[Append | WriteFile | DropFile], *, held: int = 0) -> None:
        super().apply([change for change in changes if not isinstance(change, Append)], held=held)

    def differing(self) -> list[str]:
        """Files that are not what the fold makes of the log, by their paths in the space."""
        found = set()
        for kind in (WRITTEN, DROPPED):
            below = self.folder / kind
            found |= {str(path.relative_to(below)) for path in below.rglob("*") if path.is_file()}
        return sorted(found)


class ScratchView(OpenView[Any]):
    """Blobs are read where they are, from the log where the disk has none, and never written."""

    def __init__(self, service: Service[Any], bus: Bus, root: Path, view: View, files: ScratchFiles) -> None:
        super().__init__(service, bus, root.name, root, view, files)
        self.files = files
        self.source = bus

    async def _keep(self, blob: events.Blob) -> bytes:
        path = self.files.blob_path(blob.sha256)
        if path.exists():
            data = await asyncio.to_thread(path.read_bytes)
            if len(data) == blob.size_bytes and hashlib.sha256(data).hexdigest() == blob.sha256:
                return data
        return await bus_blobs.get(self.source, self.space, blob.sha256, blob.size_bytes)


@contextlib.asynccontextmanager
async def scratch(service: Service[Any], bus: Bus, root: Path, folder: Path) -> AsyncIterator[ScratchView]:
    """An empty view of `service` in `folder`, over the space at `root`."""
    files = ScratchFiles(root, bus.epoch, folder / "files")
    view = View(folder / f"{service.name}.db", service.tables, n=1)
    opened = ScratchView(service, bus, root, view, files)
    await view.open()
    try:
        yield opened
    finally:
        await opened.close()
