"""A space with something of everything, folded by every installed service, for tests that look at a whole home."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lamina import events, ids, times
from lamina.bus import Bus, blobs
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.events import Blob, MemoryStated, SessionEnded, ToolReturned, TurnRecorded
from lamina.home import Home
from lamina.runtime.decider import now_us
from lamina.runtime.following import due_now
from lamina.runtime.registry import fold_services
from lamina.runtime.worker import Worker
from lamina.store.driver import connect
from tests.support.toy import applied, running, until

SPACE = "alice"
WORDS = (
    "the orders live in PostgreSQL",
    "주문은 PostgreSQL에 있다",
    "订单在数据库里",
    "注文はデータベースにある",
    "ok",
)


async def spoken(bus: Bus, count: int = 30, space: str = SPACE, start: int = 0) -> None:
    """Turns in four languages, tool results small and large, blobs, a repetition, a conflict, noise."""
    for n in range(start, start + count):
        session = f"s{n % 3}"
        if n % 6 == 4:
            result = "\n".join(f"line {n} {m} of a result" for m in range(1 if n % 4 else 90))
            await put(bus, ToolReturned(tool="shell", arguments={"n": n}, result=result), f"t{n}", session, n, space)
        elif n % 10 == 9:
            blob = await blobs.put(bus, ids.token(space), f"long text {n} ".encode() * 50)
            text = Blob(blob.sha256, blob.size_bytes)
            await put(bus, TurnRecorded(role="user", text=text), f"b{n}", session, n, space)
        else:
            await put(bus, TurnRecorded(role="user", text=f"{WORDS[n % 5]} {n}"), f"u{n}", session, n, space)
    await put(bus, MemoryStated(text=f"tea, {start}"), f"m{start}", "", start, space)
    await put(bus, MemoryStated(text=f"tea, {start}"), f"m{start}", "", start, space)
    await put(bus, MemoryStated(text="coffee"), f"m{start}", "", start, space)
    await bus.publish(ids.event_subject(ids.token(space), "turn.recorded"), b"\xff no event")
    await put(bus, SessionEnded(), f"end{start}", "s0", start, space)


async def put(bus: Bus, data: Any, id: str, session: str, n: int, space: str) -> None:
    time = times.from_micros(1_764_000_000_000_000 + n * 1_000_000)
    event = events.make(data, id=id, space=space, session=session, time=time)
    await bus.publish(ids.event_subject(ids.token(space), event.type), events.encode(event))


async def folded(home: Home, log: MemoryLog, space: str = SPACE) -> None:
    """Run a worker of every service that folds, without a model, up to the end of the log; then stop them."""
    bus = MemoryBus(log)
    last = await bus.last(f"lamina.ev.*.{ids.token(space)}.>")
    assert last is not None
    workers = [Worker(plain(service), MemoryBus(log), home) for service in fold_services().values()]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running(*workers))
        for name in fold_services():
            await until(partial(_reached, home, space, name, last.seq))


async def decided(home: Home, log: MemoryLog) -> None:
    """Run every service with its decisions until nothing is due."""
    services = {name: replace(service, embeds="") for name, service in fold_services().items()}
    workers = [Worker(service, MemoryBus(log), home) for service in services.values()]

    def settled() -> bool:
        last = [one.seq for one in log.messages.values() if f".{SPACE}." in one.subject][-1]
        if any(applied(home, SPACE, name) < last for name in services):
            return False
        return not any(_due(home, service) for service in services.values())

    async with running(*workers):
        await until(settled)


def _due(home: Home, service: Any) -> bool:
    db: Any = connect((home.spaces / SPACE / "views" / f"{service.name}.db").resolve(), readonly=True)
    try:
        return due_now(service, db, now_us())
    finally:
        db.close()


def _reached(home: Home, space: str, service: str, seq: int) -> bool:
    return applied(home, space, service) >= seq


def plain(service: Any) -> Any:
    """The service without what decides: it folds what is in the log."""
    return replace(service, decide=None, configure=None, embeds="")


def files(root: Path) -> dict[str, bytes]:
    """Every file of a space but its views, by its path."""
    found = (path for path in root.rglob("*") if path.is_file() and "views" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}
