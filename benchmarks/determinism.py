"""Does the pipeline give the same twice? Turns of a real log, the built-in extractor, atoms, scenarios, persona.

Two runs over the same log from nothing, and a replay of the first: every table of every view is compared, without the
moments at which something arrived or was decided and how long it took. A replay is compared whole.

    python benchmarks/determinism.py [--turns 5000]
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, keep, real_turns
from lamina import events, ids
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.errors import LaminaError, Unavailable
from lamina.home import Home
from lamina.runtime.apply import read_meta
from lamina.runtime.following import due_now
from lamina.runtime.registry import fold_services
from lamina.runtime.spec import Service
from lamina.runtime.worker import Worker
from lamina.store.driver import connect, driver

SERVICES = ("atoms", "scenarios", "persona")
MOMENTS = {"at_us", "known_us", "duration_ms"}
NOW_US = 1_764_600_000_000_000
A_SESSION = 40
SPACE = "bench"


async def published(turns: int, data: Path) -> MemoryLog:
    log = MemoryLog()
    bus = MemoryBus(log)
    start = datetime(2025, 1, 1, tzinfo=UTC)
    for n, (_, role, text) in enumerate(real_turns(data)[:turns]):
        session = f"s{n // A_SESSION}"
        said = events.TurnRecorded(role=role, text=text)
        await _put(bus, said, f"t{n}", session, start + timedelta(minutes=n))
        if n % A_SESSION == A_SESSION - 1:
            await _put(bus, events.SessionEnded(), f"end{n}", session, start + timedelta(minutes=n))
    return log


async def _put(bus: MemoryBus, data: Any, id: str, session: str, when: datetime) -> None:
    event = events.make(data, id=id, space=SPACE, session=session, time=when)
    await bus.publish(ids.event_subject(SPACE, event.type), events.encode(event))


async def run(home: Home, log: MemoryLog, names: Sequence[str] = SERVICES, *, decide: bool = True) -> None:
    """Each service after the other, up to where nothing is due in it."""
    for name in names:
        service = fold_services()[name]
        worker: Worker[Any] = Worker(service, MemoryBus(log), home, clock_us=lambda: NOW_US)
        if not decide:
            worker.decider.stop()
        task = asyncio.create_task(worker.run())
        while not await asyncio.to_thread(_done, home, service, log, decide):
            await asyncio.sleep(0.05)
            if not decide:
                await worker.follower.touch(SPACE, None)
        worker.stop()
        await task


def _view(home: Home, name: str) -> sqlite3.Connection:
    """With the library that writes it: two SQLites in one process let go of one another's locks."""
    path = home.spaces / SPACE / "views" / f"{name}.db"
    if not path.exists():
        raise Unavailable(f"{name}: there is no view yet")
    db: sqlite3.Connection = connect(path.resolve(), readonly=True)
    return db


def _done(home: Home, service: Service[Any], log: MemoryLog, decide: bool) -> bool:
    with contextlib.suppress(LaminaError, driver.Error), contextlib.closing(_view(home, service.name)) as db:
        return int(read_meta(db, "applied_seq", 0)) >= log.last_seq and not (decide and due_now(service, db, NOW_US))
    return False


def digests(home: Home, *, moments: bool) -> dict[str, str]:
    """View and table -> digest of its rows."""
    found = {}
    for name in SERVICES:
        with contextlib.closing(_view(home, name)) as db:
            sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%fts5%'"
            for (table,) in db.execute(sql).fetchall():
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                kept = [column for column in columns if moments or column not in MOMENTS]
                if table == "meta" or "_fts" in table or not kept:
                    continue
                rows = sorted(map(repr, db.execute(f"SELECT {', '.join(kept)} FROM {table}")))
                found[f"{name}.{table}"] = f"{len(rows)}:{hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]}"
    return found


async def main() -> None:
    options = arguments(__doc__, turns=5_000)
    os.environ["LAMINA_EMBEDDING_PROVIDER"] = "none"
    runs: list[dict[str, str]] = []
    texts: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix="lamina-bench-") as folder:
        for name in ("first", "second"):
            home = Home(Path(folder) / name)
            home.prepare()
            log = await published(options.turns, options.data)
            await run(home, log)
            runs.append(digests(home, moments=False))
            texts.append((home.spaces / SPACE / "persona.md").read_bytes())
        whole = digests(home, moments=True)
        shutil.rmtree(home.spaces / SPACE / "views")
        shutil.rmtree(home.run)
        home.prepare()
        await run(home, log, decide=False)
        replayed = digests(home, moments=True)
    keep(
        "determinism",
        {
            "turns": options.turns,
            "events": log.last_seq,
            "tables": len(whole),
            "differ_between_two_runs": sorted(name for name in runs[0] if runs[0][name] != runs[1][name]),
            "differ_after_a_replay": sorted(name for name in whole if whole[name] != replayed.get(name)),
            "persona_is_the_same": texts[0] == texts[1],
            "rows": {name: int(value.split(":")[0]) for name, value in whole.items()},
        },
    )


if __name__ == "__main__":
    asyncio.run(main())
