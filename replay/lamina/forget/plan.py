"""One reading of a space: what is to be erased, what goes with it, and what stays."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from lamina import events
from lamina.bus import Bus, Message
from lamina.bus import blobs as bus_blobs
from lamina.errors import Forgotten, Invalid
from lamina.events import AtomsExtracted, FileEdited, MemoryForgotten, ToolReturned
from lamina.forget.chosen import CHOOSABLE, MALFORMED, TOMBSTONE, Chooses
from lamina.forget.closure import Closure
from lamina.forget.pieces import Pieces
from lamina.runtime import reading
from lamina.runtime.history import history, space_subject
from lamina.runtime.spec import Recorded

BATCH = 1_000
KEPT_APART_BYTES = 64 * 1024
"""A tool result of more bytes than this also lies in `blobs/`, whether or not it came as one."""
Told = Callable[[str, int, int], None]
"""(what is done, how much of it, of how much), to be shown."""


class Plan(Struct):
    """What was read. `new` are ids that no tombstone names yet, with their types; `gone` all that are forgotten.

    `seqs` are positions of messages that are still there, `blobs` what they alone name, by size; `said` counts what
    was said in all of the space.
    """

    new: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    seqs: list[int] = field(default_factory=list)
    blobs: dict[str, int] = field(default_factory=dict)
    said: int = 0
    missing: list[str] = field(default_factory=list)
    pieces: Pieces = field(default_factory=Pieces)

    def count(self, *, sources: bool) -> dict[str, int]:
        """How many events of each type are new."""
        kinds = Counter(kind for kind in self.new.values() if (kind in CHOOSABLE or kind == MALFORMED) == sources)
        return dict(sorted(kinds.items()))


async def tombstones(bus: Bus, root: Path) -> set[str]:
    """Every id that was forgotten in the space at `root`."""
    found: set[str] = set()
    async for recorded in _read(bus, root):
        if isinstance(recorded.data, MemoryForgotten):
            found.update(recorded.data.ids)
    return found


async def plan(
    bus: Bus,
    root: Path,
    chooser: Chooses | None,
    told: Told,
    *,
    waiting: Sequence[Recorded] = (),
    erased: Pieces | None = None,
) -> Plan:
    """Read all of the space at `root`, and what waits to be published into it. Without a chooser nothing is meant but
    what is forgotten already. `erased` are pieces of texts that are erased already: edits that quote them go, too."""
    made = Plan()
    known = await tombstones(bus, root)
    closure = Closure(known)
    kept: set[str] = set()
    derived = Pieces()
    read = 0
    async for recorded in _read(bus, root):
        read += 1
        if read % BATCH == 0:
            told("reading", read, 0)
        named = _blobs(recorded)
        texts = await _contents(bus, root, named) if chooser is not None and chooser.reads_texts else {}
        quotes = _quotes(recorded, made.pieces, derived, erased or made.pieces)
        if not _is_gone(recorded, closure, chooser, texts, quotes=quotes):
            kept.update(named)
            made.said += recorded.event is not None and recorded.event.type in CHOOSABLE
            continue
        made.seqs.append(recorded.seq)
        made.blobs.update(named)
        if recorded.id not in known:
            made.new[recorded.id] = recorded.event.type if recorded.event is not None else MALFORMED
        if recorded.event is not None:
            if not quotes:  # its other lines may be those of others
                made.pieces.take(recorded.event, texts or await _contents(bus, root, named))
            derived.add(_derived(recorded, closure.gone))
        else:
            made.pieces.add([recorded.raw.decode("utf-8", "replace")])
    for recorded in waiting:
        if _is_gone(recorded, closure, chooser, {}, quotes=False) and recorded.event is not None:
            made.pieces.take(recorded.event, {})
            if recorded.id not in known:
                made.new[recorded.id] = recorded.event.type
    made.blobs = {sha256: size for sha256, size in made.blobs.items() if sha256 not in kept}
    made.gone, made.numbers = closure.gone, closure.numbers
    made.said += sum(made.count(sources=True).values())
    made.missing = chooser.missing() if chooser is not None else []
    return made


async def spare(bus: Bus, root: Path, pieces: Pieces, gone: set[str]) -> None:
    """Look no more for pieces that something says which stays."""
    if not len(pieces):
        return
    async for batch in _batches(bus, root):
        stays = [one for one in batch if one.id not in gone]
        await asyncio.to_thread(pieces.drop_all, [one.raw for one in stays])
        for one in stays:
            for data in (await _contents(bus, root, _blobs(one))).values():
                await asyncio.to_thread(pieces.drop, data)


def _quotes(recorded: Recorded, *pieces: Pieces) -> bool:
    """Does what a person did to a file quote what is gone? It then quotes a line that is gone from the file, too."""
    if not isinstance(recorded.data, FileEdited):
        return False
    return any(next(one.within(recorded.raw), None) is not None for one in pieces)


def _derived(recorded: Recorded, gone: set[str]) -> list[str]:
    """The atoms of an extraction that were made of what is gone."""
    atoms = recorded.data.atoms if isinstance(recorded.data, AtomsExtracted) else ()
    return [atom.text for atom in atoms if any(span.id in gone for span in atom.sources)]


def _is_gone(
    recorded: Recorded, closure: Closure, chooser: Chooses | None, texts: Mapping[str, bytes], *, quotes: bool
) -> bool:
    event = recorded.event
    if event is not None:
        if event.type == TOMBSTONE:
            return False
        chosen = chooser is not None and chooser(event, texts, recorded.at_us)
        return closure.tell(event, chosen or quotes)
    if recorded.id in closure.gone or (chooser is not None and chooser.malformed(recorded.id, recorded.raw)):
        closure.gone.add(recorded.id)
        return True
    return False


def _blobs(recorded: Recorded) -> dict[str, int]:
    """The blobs that an event has, also those that the references keep of a long result."""
    if recorded.data is None:
        return {}
    found = {blob.sha256: blob.size_bytes for blob in events.blobs_of(recorded.data)}
    if isinstance(recorded.data, ToolReturned) and isinstance(recorded.data.result, str):
        raw = recorded.data.result.encode("utf-8", "surrogatepass")
        if len(raw) > KEPT_APART_BYTES:
            found[hashlib.sha256(raw).hexdigest()] = len(raw)
    return found


async def _contents(bus: Bus, root: Path, named: Mapping[str, int]) -> dict[str, bytes]:
    """The bytes of blobs, from the disk or else the log; those that are to be had nowhere are left out."""
    found = {}
    for sha256, size in named.items():
        path = root / "blobs" / sha256
        if path.exists():
            found[sha256] = await asyncio.to_thread(path.read_bytes)
            continue
        with contextlib.suppress(Forgotten, Invalid):
            found[sha256] = await bus_blobs.get(bus, root.name, sha256, size)
    return found


async def _read(bus: Bus, root: Path) -> AsyncIterator[Recorded]:
    async with contextlib.aclosing(_batches(bus, root)) as parts:
        async for batch in parts:
            for recorded in batch:
                yield recorded


async def _batches(bus: Bus, root: Path) -> AsyncGenerator[list[Recorded], None]:
    """Everything that is in the log of the space now."""
    last = await bus.last(space_subject(root.name))
    if last is None:
        return
    parts = history(bus, root, after=0, until=last.seq + 1, name="forget", batch=BATCH)
    async with contextlib.aclosing(parts):
        async for messages in parts:
            yield await asyncio.to_thread(_recorded, messages, root.name)


def _recorded(messages: list[Message], space: str) -> list[Recorded]:
    return [reading.read(message, space).recorded for message in messages]
