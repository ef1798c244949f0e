"""Writing the archive of a space: a plain tar of events, blobs and human files, its manifest last.

Nothing is half written: the file takes its name when it is whole. The space is in use meanwhile; the archive goes up
to the last event of the moment it was begun.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import tarfile
from pathlib import Path
from typing import BinaryIO

import msgspec

from lamina.bus import Bus
from lamina.bus import blobs as bus_blobs
from lamina.errors import Forgotten
from lamina.events import Blob
from lamina.export.records import FORMAT, VERSION, Exported, Manifest, Member
from lamina.export.source import human_files, said
from lamina.home import Home
from lamina.ids import untoken
from lamina.store.files import sync_folder, translated_os
from lamina.times import aware, text_of

EVENTS, MANIFEST = "events.jsonl", "manifest.json"


async def export(home: Home, bus: Bus, space: str, target: Path) -> Exported:
    """Write the archive of a space (a token) to `target`, replacing what stands there in one step.

    A blob that was erased is left out. `DiskFull` or `Denied` leave `target` as it was; raises as `Bus.read`.
    """
    root = home.spaces / space
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    spool = target.with_name(f".{target.name}.{os.getpid()}.events")
    with translated_os(target):
        try:
            count, seq, blobs = await _spooled(bus, root, spool)
            with temporary.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                writer = _Writer(tar)
                await asyncio.to_thread(writer.add_file, EVENTS, spool)
                kept = await _blobs(bus, root, blobs, writer)
                for path in human_files(root):
                    writer.add(f"files/{path.relative_to(root)}", path.read_bytes())
                manifest = Manifest(
                    format=FORMAT,
                    version=VERSION,
                    space=untoken(space),
                    events=count,
                    epoch=bus.epoch,
                    seq=seq,
                    made=text_of(aware(None)),
                    members=writer.members,
                )
                writer.add(MANIFEST, msgspec.json.encode(manifest))
            size = await asyncio.to_thread(_placed, temporary, target)
        finally:
            spool.unlink(missing_ok=True)
            temporary.unlink(missing_ok=True)
    return Exported(
        space=untoken(space), file=str(target), format="archive", events=count, blobs=kept, size_bytes=size
    )


def _placed(temporary: Path, target: Path) -> int:
    """Let a whole file take its name, durably; its size."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
    temporary.replace(target)
    sync_folder(target.parent)
    return size


async def _spooled(bus: Bus, root: Path, spool: Path) -> tuple[int, int, dict[str, Blob]]:
    """Write the events to a file: how many, up to where, and the blobs that they name."""
    count = seq = 0
    blobs: dict[str, Blob] = {}
    with spool.open("wb") as file:
        async for one in said(bus, root):
            file.write(one.line)
            blobs.update((blob.sha256, blob) for blob in one.blobs)
            count, seq = count + 1, one.message.seq
    return count, seq, blobs


async def _blobs(bus: Bus, root: Path, blobs: dict[str, Blob], writer: _Writer) -> int:
    kept = 0
    for sha256, blob in sorted(blobs.items()):
        path = root / "blobs" / sha256
        data = await asyncio.to_thread(path.read_bytes) if path.exists() else b""
        if len(data) != blob.size_bytes or hashlib.sha256(data).hexdigest() != sha256:
            try:
                data = await bus_blobs.get(bus, root.name, sha256, blob.size_bytes)
            except Forgotten:
                continue
        writer.add(f"blobs/{sha256}", data)
        kept += 1
    return kept


class _Writer:
    """Adds files to a tar, with nothing of the machine in them, and keeps what the manifest says."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self.members: dict[str, Member] = {}

    def add(self, name: str, data: bytes) -> None:
        self._add(name, io.BytesIO(data), len(data), hashlib.sha256(data).hexdigest())

    def add_file(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
            file.seek(0)
            self._add(name, file, size, digest)

    def _add(self, name: str, file: BinaryIO, size: int, sha256: str) -> None:
        info = tarfile.TarInfo(name)
        info.size = size
        info.mode = 0o600
        self._tar.addfile(info, file)
        if name != MANIFEST:
            self.members[name] = Member(size, sha256)
