"""Forgetting, from the request to the receipt.

The tombstone is the intent: once it is in the log, all that it names is erased from it, by whoever finds that this
was begun and not ended (`.forgetting` says so). Nothing of the rest needs to be remembered: what is to be done is
read from the log every time, and doing it twice changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from lamina import events, ids
from lamina.bus import Bus, Outgoing
from lamina.config import RetentionConfig
from lamina.errors import Busy, Conflict, Invalid
from lamina.events import MemoryForgotten
from lamina.forget import anew, erase
from lamina.forget.chosen import Chooser, Chooses
from lamina.forget.entities import made_of
from lamina.forget.pieces import Pieces
from lamina.forget.plan import Plan, Told, plan, spare
from lamina.forget.proof import Proof, prove
from lamina.forget.retention import GUARD, Expired, pinned
from lamina.home import Home, Lock
from lamina.log import get_logger
from lamina.records import Receipt
from lamina.requests import Forget
from lamina.runtime.files import FORGETTING_FILE, ledger_epoch
from lamina.runtime.pasts import discard_pasts
from lamina.runtime.registry import fold_services
from lamina.runtime.views import Views
from lamina.store.files import sync_folder, translated_os, write_atomic
from lamina.times import aware

MOST_IDS = 10_000
IDS_IN_ONE = 4_000
MOST_ROUNDS = 5
LOCK_S = 60.0
LOOK_S = 0.1
COPIES = "archives, exports and backups made before, and disks' freed blocks"
log = get_logger()


class _Done(Struct):
    """What was done in all rounds."""

    new: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    pieces: Pieces = field(default_factory=Pieces)
    unseen: list[str] = field(default_factory=list)

    def add(self, **counts: int) -> None:
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count


async def forget(home: Home, bus: Bus, space: str, request: Forget, told: Told = lambda *_: None) -> Receipt:
    """Forget what `request` means in a space (a token), and all that was made of it alone; what other sources tell is
    derived again. Interrupted after its tombstone, `resume` or the next call does the rest.

    `Invalid` for a request that is none, or that names what is not there. `Busy` while another process forgets.
    """
    chooser = Chooser(request, await asyncio.to_thread(made_of, home.spaces / space, request))
    return await _chosen(home, bus, space, chooser, told, dry_run=request.dry_run)


async def expire(
    home: Home,
    bus: Bus,
    space: str,
    policy: RetentionConfig,
    told: Told = lambda *_: None,
    *,
    now_us: int,
    dry_run: bool = False,
    force: bool = False,
) -> Receipt:
    """Forget what the policy lets go in a space (a token). `Conflict`, and nothing is changed, where that is more
    than 80 % of what was said there, unless `force` says so."""
    kept = await asyncio.to_thread(pinned, home.spaces / space, policy)
    most = 1.0 if force else GUARD
    return await _chosen(home, bus, space, Expired(policy, kept, now_us), told, dry_run=dry_run, most=most)


async def _chosen(
    home: Home, bus: Bus, space: str, chooser: Chooses, told: Told, *, dry_run: bool, most: float = 1.0
) -> Receipt:
    start = time.monotonic()
    root = home.spaces / space
    async with _alone(home, space):
        finished = None if dry_run else await _finished(home, bus, space, told)
        if not dry_run:
            write_atomic(root / FORGETTING_FILE, b"")
        found = await plan(bus, root, chooser, told, waiting=await asyncio.to_thread(erase.waiting, home, space))
        refused = _refused(space, found, most)
        if not dry_run and (refused or not found.new):
            _ended(root)
        if finished is not None and not found.new:
            return finished  # most likely this very request, interrupted
        if refused is not None:
            raise refused
        if dry_run or not found.new:
            return _receipt(space, found, _Done(new=found.new), start, dry_run=dry_run)
        return await _through(home, bus, space, found, told, start)


def _refused(space: str, found: Plan, most: float) -> Invalid | Conflict | None:
    """Why nothing of it is done."""
    if found.missing:
        name = ids.untoken(space)
        return Invalid(f"nothing in space {name!r} is called {found.missing[0]!r}; nothing was changed")
    going = sum(found.count(sources=True).values())
    if going > most * found.said:
        share = f"{going:,} of {found.said:,} events of space {ids.untoken(space)!r}"
        return Conflict(
            f"the policy would erase {share}, more than {most:.0%}: look at it with --dry-run, then --force"
        )
    return None


async def rest(home: Home, bus: Bus, space: str, told: Told = lambda *_: None) -> Receipt:
    """Do the rest of what was begun in a space, and erase what was published again under an id that was forgotten."""
    start = time.monotonic()
    async with _alone(home, space):
        begun = (home.spaces / space / FORGETTING_FILE).exists()
        write_atomic(home.spaces / space / FORGETTING_FILE, b"")
        found = await plan(bus, home.spaces / space, None, told)
        if begun or found.seqs or found.new:
            return await _through(home, bus, space, found, told, start)
        _ended(home.spaces / space)
        return _receipt(space, found, _Done(), start)


async def resume(home: Home, bus: Bus, told: Told = lambda *_: None) -> list[Receipt]:
    """Do the rest of whatever was begun in this home; what was done, by space."""
    done = []
    for space in unfinished(home):
        async with _alone(home, space):
            receipt = await _finished(home, bus, space, told)
            if receipt is not None:
                done.append(receipt)
    return done


def unfinished(home: Home) -> list[str]:
    """The spaces (tokens) in which forgetting was begun, and not ended."""
    return sorted(mark.parent.name for mark in home.spaces.glob(f"*/{FORGETTING_FILE}"))


async def _finished(home: Home, bus: Bus, space: str, told: Told) -> Receipt | None:
    """Do the rest of what was begun in one space, if there is any."""
    if not (home.spaces / space / FORGETTING_FILE).exists():
        return None
    start = time.monotonic()
    log.info("forgetting_goes_on", space=space)
    return await _through(home, bus, space, await plan(bus, home.spaces / space, None, told), told, start)


async def _through(home: Home, bus: Bus, space: str, found: Plan, told: Told, start: float) -> Receipt:
    """Erase, look what was made over it meanwhile, and erase that too, until nothing is left; then prove it."""
    root = home.spaces / space
    if ledger_epoch(root) not in (None, bus.epoch):
        raise Conflict(
            f"the ledger of {ids.untoken(space)!r} is of another epoch of the log: restart the daemon first"
        )
    done = _Done()
    for _ in range(MOST_ROUNDS):
        done.new |= found.new
        await _said(bus, space, found)
        await _erased(home, bus, space, found, done, told)
        first, found = found, await plan(bus, root, None, told, erased=done.pieces)
        if not found.seqs and not found.new:
            found = first
            break
    await asyncio.to_thread(discard_pasts, home, space)
    told("looking for what may be left", 0, 0)
    await spare(bus, root, done.pieces, found.gone)
    receipt = _receipt(space, found, done, start, proof=await prove(home, bus, space, done.pieces))
    _ended(root)
    return receipt


def _ended(root: Path) -> None:
    with translated_os(root):
        (root / FORGETTING_FILE).unlink(missing_ok=True)
        sync_folder(root)


async def _said(bus: Bus, space: str, found: Plan) -> None:
    """Publish the tombstones: all of them are in the log, or none."""
    messages = []
    named = tuple(found.new)
    for start in range(0, len(named), IDS_IN_ONE):
        data = MemoryForgotten(ids=named[start : start + IDS_IN_ONE], numbers=found.numbers)
        event = events.make(data, id=ids.uuid7(), space=ids.untoken(space), time=aware(None))
        messages.append(Outgoing(ids.event_subject(space, event.type), events.encode(event), event.id))
    if messages:
        await bus.publish_batch(messages)


async def _erased(home: Home, bus: Bus, space: str, found: Plan, done: _Done, told: Told) -> None:
    root = home.spaces / space
    since = time.time()
    done.pieces.merge(found.pieces)
    await _journaled(home, bus, space)
    blobs, messages = await erase.in_log(bus, root, found, told)
    told("erasing in the ledger", 0, 0)
    lines = await asyncio.to_thread(erase.in_ledgers, root, found.gone)
    waiting, done.unseen = await asyncio.to_thread(erase.in_outboxes, home, space, found.gone)
    made = await anew.views(home, bus, space, told, since=since)
    files = made.files + await asyncio.to_thread(erase.left_overs, home, root)
    done.views = tuple(made.views)
    done.add(messages=messages, lines=lines + waiting, blobs=blobs, files=files, vectors=made.vectors)


async def _journaled(home: Home, bus: Bus, space: str) -> None:
    """Let the journal have folded all that is there: it writes no line any more of what is now erased."""
    last = await bus.last(f"{ids.SUBJECT_ROOT}.ev.{ids.lane(space)}.{space}.>")
    views = Views(fold_services()["journal"], bus, home, most_open=1)
    try:
        until = last.seq + 1 if last is not None else 0
        async with views.use(space, until=until) as view:
            await view.catch_up(until)
    finally:
        await views.close()


def _receipt(
    space: str, found: Plan, done: _Done, start: float, *, proof: Proof | None = None, dry_run: bool = False
) -> Receipt:
    counted = Plan(new=done.new)
    return Receipt(
        space=ids.untoken(space),
        dry_run=dry_run,
        said=counted.count(sources=True),
        derived=counted.count(sources=False),
        ids=tuple(done.new)[:MOST_IDS],
        views=done.views,
        looked_for=len(done.pieces),
        in_messages=proof.messages if proof is not None else 0,
        in_files=proof.files if proof is not None else 0,
        found=tuple(proof.found) if proof is not None else (),
        unseen=(*done.unseen, *proof.unseen, COPIES) if proof is not None else (),
        seconds=round(time.monotonic() - start, 3),
        **done.counts,
    )


@asynccontextmanager
async def _alone(home: Home, space: str) -> AsyncIterator[None]:
    """One process forgets in a space at a time."""
    lock = Lock(home.spaces / space / "views" / ".forget.lock")
    until = time.monotonic() + LOCK_S
    while not lock.take():
        if time.monotonic() > until:
            raise Busy(f"process {lock.holder()} has been forgetting in this space for {LOCK_S:.0f} s; try again")
        await asyncio.sleep(LOOK_S)
    try:
        yield
    finally:
        lock.release()
