"""Deriving again: the service that decides, over a log in memory, until nothing is left to be decided."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lamina import events
from lamina.bus import Bus
from lamina.bus.memory import MemoryLog
from lamina.config import Config, load
from lamina.errors import Invalid, LaminaError, Transient, Unavailable
from lamina.events import AtomsExtracted, AtomsReconciled, StepFailed
from lamina.home import Home
from lamina.ids import untoken
from lamina.rederive.records import Rederived
from lamina.rederive.shadow import Shadow, ShadowBus, head
from lamina.runtime.apply import read_meta
from lamina.runtime.decider import now_us
from lamina.runtime.following import following
from lamina.runtime.registry import fold_services
from lamina.runtime.spec import Service, Wanted
from lamina.runtime.worker import Worker
from lamina.store import Damaged, ViewReader

LOOK_S = 0.1
STOP_S = 10.0
COSTS = (AtomsExtracted, AtomsReconciled, StepFailed)
PATIENCE = 3
"""Failures of one decision after which the run ends; what was decided is kept, and the next run goes on."""


class Progress(Struct, frozen=True):
    """Decisions made in this run, and turns that still wait."""

    made: int
    waiting: int


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """`section.key=value` of the command line; `Invalid` for what is no key of the configuration."""
    found = {}
    there = {
        f"{section}.{key}"
        for section in Config.__struct_fields__
        for key in getattr(Config(), section).__struct_fields__
    }
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or key not in there:
            raise Invalid(f"{pair!r} is no setting; write section.key=value, `lamina config` lists them")
        found[key] = value
    return found


def configured(home: Home, changed: Mapping[str, str]) -> Config:
    """The home's configuration with some settings changed; raises as `config.load`."""
    changes = {f"LAMINA_{key.replace('.', '_')}".upper(): value for key, value in changed.items()}
    return load(home.config, os.environ | changes)


def atoms_service(config: Config) -> Service[Any]:
    """The atoms service as it decides under a configuration."""
    service = fold_services()["atoms"]
    if service.configure is not None:
        service = service.configure(config)
    return replace(service, configure=None)


async def rederive(
    home: Home,
    bus: Bus,
    space: str,
    name: str,
    changed: Mapping[str, str],
    *,
    service: Service[Any] | None = None,
    moved: Callable[[Progress], None] = lambda progress: None,
) -> Rederived:
    """Derive the atoms of a space (a token) again, in the shadow `name`, from everything that is in its log now.

    A shadow that was begun goes on where it stopped, with what came since. `Unavailable` where a decision failed
    three times: what was decided is kept. `Invalid`, `Conflict` for settings that are none, or not those it was begun
    with.
    """
    start = time.monotonic()
    shadow = Shadow(home, space, name)
    about = shadow.begin(bus.epoch, changed)
    until = await head(bus, space)
    log = await shadow.log(bus, until)
    log.now_us = now_us
    own = ShadowBus(log, shadow, until)
    worker = Worker(service or atoms_service(configured(home, about.settings)), own, shadow.home)
    reader = ViewReader(shadow.view("atoms"))
    running = asyncio.create_task(worker.run(), name="lamina-rederive")
    try:
        while not running.done():
            now = await _standing(worker.service, reader, log)
            moved(Progress(own.made, now.waiting))
            if now.done:
                break
            if now.failing:
                raise Unavailable(f"{PATIENCE} attempts failed ({now.failing}); run it again, and it goes on")
            await asyncio.wait({running}, timeout=LOOK_S)
        worker.stop()
        await running  # what ended it, if it was not we
        shadow.keep(replace(about, seq=until))
        return await _told(shadow, reader, own.made, start)
    finally:
        worker.stop()
        await asyncio.wait({running}, timeout=STOP_S)
        running.cancel()
        await asyncio.wait({running})
        await reader.close()
        await own.close()


class _Standing(Struct, frozen=True):
    """Is all of the log folded and nothing due, how many turns wait, and what keeps failing."""

    done: bool
    waiting: int = 0
    failing: str = ""


async def _standing(service: Service[Any], reader: ViewReader, log: MemoryLog) -> _Standing:
    def look(db: Any) -> _Standing:
        raw = read_meta(db, "state", None)
        state = msgspec.json.decode(raw, type=service.state) if raw is not None else service.state()
        if read_meta(db, "epoch", "") != log.epoch:
            return _Standing(False)  # a view of an earlier run, which is made anew
        if int(read_meta(db, "applied_seq", 0)) < log.last_seq:
            return _Standing(False, state.waiting)
        now = following(service, db, state, now_us())
        if now.backs_off and now.numbers.attempt >= PATIENCE:
            error = db.execute("SELECT error FROM failed ORDER BY not_before_us DESC LIMIT 1").fetchone()
            return _Standing(False, state.waiting, error[0] if error else "no reason is known")
        return _Standing(not (now.backs_off or isinstance(now.wanted, Wanted)), state.waiting)

    try:
        return await reader.read(look)
    except (Damaged, Transient):
        return _Standing(log.last_seq == 0)  # there is no view yet, and need be none of an empty log


async def _told(shadow: Shadow, reader: ViewReader, made: int, start: float) -> Rederived:
    about = shadow.about
    try:
        atoms, waiting = await reader.read(_counted)
    except LaminaError:
        atoms = waiting = 0  # of an empty log there is no view
    decided = [events.decode_data(events.decode(bytes(one.event))) for one in shadow.decided()]
    return Rederived(
        space=untoken(shadow.space),
        name=shadow.name,
        seq=about.seq,
        decisions=sum(not isinstance(one, StepFailed) for one in decided),
        made=made,
        atoms=atoms,
        tokens=sum(one.tokens for one in decided if isinstance(one, COSTS)),
        waiting=waiting,
        settings=about.settings,
        seconds=round(time.monotonic() - start, 3),
    )


def _counted(db: Any) -> tuple[int, int]:
    atoms = db.execute("SELECT count(*) FROM atoms WHERE status IN ('active', 'contradicted')").fetchone()[0]
    waiting = db.execute("SELECT count(*) FROM turns WHERE outcome = 0").fetchone()[0]
    return int(atoms), int(waiting)
