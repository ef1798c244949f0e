"""The state of a home: what runs on it, how far behind it is, and what went wrong."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, convert
from msgspec.structs import astuple

from lamina.cli.running import running
from lamina.errors import LaminaError

if TYPE_CHECKING:
    from sqlite3 import Connection

    from lamina.bus.nats import NatsBus
    from lamina.daemon import Supervised
    from lamina.home import Home, Runtime
    from lamina.runtime.membership import Heartbeat

FRESH_S = 5.0
COUNT_S = 2.0
"""So long the parked events of the spaces are counted; a home of very many spaces gets what was counted by then."""
ANSWER_S = 2.0


class Log(Struct, frozen=True, kw_only=True):
    """The stream: positions, messages, bytes used and allowed."""

    epoch: str
    first_seq: int
    last_seq: int
    messages: int
    size_bytes: int
    max_bytes: int


class BusStatus(Struct, frozen=True, kw_only=True):
    """`state`: up, down (no daemon runs) or unreachable (`error` says why)."""

    state: str
    home: str
    url: str = ""
    pid: int | None = None
    version: str = ""
    up_seconds: float | None = None
    log: Log | None = None
    waiting: int = 0
    """Events that wait in outboxes."""
    error: str = ""


class Lag(Struct, frozen=True):
    """Events of the log not yet in the views, and the age of the oldest of them; null where it cannot be known."""

    events: int | None
    seconds: float | None


class WorkerStatus(Struct, frozen=True, kw_only=True):
    """A process that runs the service; `beat_seconds` is the age of its last sign of life.

    `state`: starting, following (its `lanes`, so many), standby (it follows lanes while nobody else does), serving,
    or frozen: it gives no sign of life, and its lanes are others'.
    """

    pid: int
    state: str = "following"
    lanes: int = 0
    position: int | None = None
    applied: int | None = None
    due: int | None = None
    beat_seconds: float | None = None


class EndedWorker(Struct, frozen=True, kw_only=True):
    """A worker process that ended by itself. `state`: waiting, or crash loop; it is started again in `retry_in_s`."""

    state: str
    why: str
    restarts: int
    retry_in_s: float


class EmbeddingStatus(Struct, frozen=True, kw_only=True):
    """How far one worker is with vectors. `state`: idle, embedding, folding first, or put aside (`why`, and when
    again). `embedded` since it started, about `waiting` in `spaces`; `eta_s` where the rate is known."""

    pid: int
    state: str
    model: str
    why: str
    retry_in_s: float
    embedded: int
    waiting: int
    spaces: int
    per_second: float
    eta_s: float | None


class Outcomes(Struct, frozen=True):
    """What became of every turn, tool result and stated memory that the views of a service hold: each is counted
    once. `parked` turns have a reason, which `lamina show` and the log give."""

    extracted: int = 0
    waiting: int = 0
    parked: int = 0


class ServiceStatus(Struct, frozen=True, kw_only=True):
    """`errors` count since the workers started; `dead` are events parked in the views, with their reasons.

    `turns` are null for a service that decides nothing over turns.
    """

    name: str
    lanes: int
    workers: tuple[WorkerStatus, ...]
    lag: Lag
    errors: int
    dead: int
    last_error: str = ""
    last_dead: str = ""
    embedding: tuple[EmbeddingStatus, ...] = ()
    """Of a service that gives texts their vectors: how far each worker is with them."""
    turns: Outcomes | None = None
    wanted: int = 0
    """Worker processes asked for by `lamina scale`; 0: it runs inside the daemon."""
    ended: tuple[EndedWorker, ...] = ()


class Tokens(Struct, frozen=True):
    """`refused`: spent on decisions that came second and changed nothing. `saved`: what stubs save whenever they
    stand in a context in place of their results. `spent`: on decisions that stand, and on attempts that failed."""

    refused: int
    saved: int = 0
    spent: int = 0


class Status(Struct, frozen=True, kw_only=True):
    """`complete` is false where not every space could be looked at in time."""

    bus: BusStatus
    services: tuple[ServiceStatus, ...]
    tokens: Tokens
    complete: bool = True


class Parked(Struct):
    """What the views of a home hold of trouble, by service."""

    dead: dict[str, int]
    refused_tokens: int = 0
    saved_tokens: int = 0
    spent_tokens: int = 0
    turns: dict[str, Outcomes] = {}
    last: dict[str, str] = {}
    """By service: the event parked last, and why."""
    complete: bool = True


async def look(home: Home) -> Status:
    """The state of `home`; what does not run or answer is part of the answer."""
    import asyncio

    from msgspec.structs import replace

    from lamina.daemon import supervised, wanted
    from lamina.runtime.embedstate import embed_states
    from lamina.runtime.membership import heartbeats
    from lamina.runtime.registry import services
    from lamina.runtime.spec import Service

    parked = await asyncio.to_thread(count_parked, home)
    beats = heartbeats(home)
    daemon = running(home)
    scaled, processes = wanted(home), supervised(home) if daemon is not None else []
    bus, ages = await _bus(home, daemon, beats)
    found = []
    for name, service in services().items():
        own = [beat for beat in beats if beat.service == name]
        if isinstance(service, Service):
            told = convert(embed_states(home, name), tuple[EmbeddingStatus, ...], from_attributes=True)
            one = replace(_service(name, own, bus, ages, parked), embedding=told)
        else:
            one = _server(name, own)
        ended = tuple(_ended(process) for process in processes if process.service == name and process.why)
        found.append(replace(one, wanted=scaled.get(name, 0), ended=ended))
    return Status(
        bus=bus,
        services=tuple(found),
        tokens=Tokens(parked.refused_tokens, parked.saved_tokens, parked.spent_tokens),
        complete=parked.complete,
    )


async def _bus(home: Home, daemon: Runtime | None, beats: list[Heartbeat]) -> tuple[BusStatus, dict[int, float]]:
    """The bus, and for each position of a worker the age of the first event after it."""
    waiting = waiting_events(home)
    if daemon is None:
        return BusStatus(state="down", home=str(home.path), waiting=waiting), {}
    known = BusStatus(
        state="up",
        home=str(home.path),
        url=daemon.url,
        pid=daemon.pid,
        version=daemon.version,
        up_seconds=round(time.time() - daemon.started_us / 1e6, 1),
        waiting=waiting,
    )
    from msgspec.structs import replace

    try:
        bus = await connected(daemon)
        try:
            info = await bus.info(timeout_s=ANSWER_S)
            ages = {beat.position: await _age(bus, beat.position, info.last_seq) for beat in beats}
        finally:
            await bus.close()
    except LaminaError as error:
        return replace(known, state="unreachable", error=str(error)), {}
    log = Log(
        epoch=info.epoch,
        first_seq=info.first_seq,
        last_seq=info.last_seq,
        messages=info.messages,
        size_bytes=info.size_bytes,
        max_bytes=info.max_bytes,
    )
    return replace(known, log=log), ages


async def connected(daemon: Runtime) -> NatsBus:
    """A connection to the bus of a running daemon; `Unavailable` or `Denied` when there is none to be had."""
    from lamina.bus.nats import Credentials, connect
    from lamina.bus.server import read_credentials

    credentials = read_credentials(Path(daemon.credentials)) if daemon.credentials else Credentials()
    return await connect(daemon.url.split(","), credentials=credentials, name="lamina-status", timeout_s=ANSWER_S)


async def _age(bus: NatsBus, position: int, last_seq: int) -> float:
    if position >= last_seq:
        return 0.0
    first = await bus.next("lamina.ev.>", position, timeout_s=ANSWER_S)
    return round(max(0.0, time.time() - first.at_us / 1e6), 3) if first is not None else 0.0


def _service(
    name: str, beats: list[Heartbeat], bus: BusStatus, ages: dict[int, float], parked: Parked
) -> ServiceStatus:
    workers = tuple(
        WorkerStatus(
            pid=beat.pid,
            state=_state(beat),
            lanes=beat.lanes,
            position=beat.position,
            applied=beat.applied,
            due=beat.due,
            beat_seconds=_age_s(beat),
        )
        for beat in beats
    )
    return ServiceStatus(
        name=name,
        lanes=_lanes(beats),
        workers=workers,
        lag=_lag(beats, bus, ages),
        errors=sum(beat.errors for beat in beats),
        dead=parked.dead.get(name, 0),
        last_dead=parked.last.get(name, ""),
        turns=parked.turns.get(name),
        last_error=next((beat.last_error for beat in beats if beat.last_error), ""),
    )


def _lag(beats: list[Heartbeat], bus: BusStatus, ages: dict[int, float]) -> Lag:
    """Of all lanes: what the workers that follow some have before them, and the age of the oldest of it."""
    if not beats or bus.log is None:
        return Lag(None, None)
    following = [beat for beat in beats if beat.lanes and _age_s(beat) < FRESH_S]
    if not following:
        best = max(beats, key=lambda beat: beat.position)
        seconds = ages.get(best.position, 0.0)
        return Lag(max(0, bus.log.last_seq - best.position) if seconds else 0, seconds)
    behind = [beat for beat in following if beat.pending > 0]
    seconds = max((ages.get(beat.position, 0.0) for beat in behind), default=0.0)
    if len(following) == 1:
        seconds = ages.get(following[0].position, 0.0)
    return Lag(sum(beat.pending for beat in behind) if seconds else 0, seconds)


def _lanes(beats: list[Heartbeat]) -> int:
    """Lanes that somebody follows. While they change hands one may be counted twice, or not at all."""
    return min(256, sum(beat.lanes for beat in beats if _state(beat) != "frozen"))


def _state(beat: Heartbeat) -> str:
    from lamina.runtime.membership import LEASE_S

    return "frozen" if _age_s(beat) > LEASE_S + 1 else beat.state


def _age_s(beat: Heartbeat) -> float:
    return round((time.time_ns() // 1000 - beat.at_us) / 1e6, 1)


def _ended(process: Supervised) -> EndedWorker:
    left = max(0.0, process.retry_at_us / 1e6 - time.time()) if process.retry_at_us else 0.0
    return EndedWorker(state=process.state, why=process.why, restarts=process.restarts, retry_in_s=round(left, 1))


def _server(name: str, beats: list[Heartbeat]) -> ServiceStatus:
    """A service that keeps no view has nothing to be behind with."""
    workers = tuple(
        WorkerStatus(pid=beat.pid, state=_state(beat), lanes=beat.lanes, beat_seconds=_age_s(beat)) for beat in beats
    )
    return ServiceStatus(name=name, lanes=_lanes(beats), workers=workers, lag=Lag(0, 0.0), errors=0, dead=0)


def count_parked(home: Home, within_s: float = COUNT_S) -> Parked:
    """Parked events and refused tokens of all views, those of the last used spaces first; a view that cannot be
    read counts for nothing here, since it is about to be rebuilt."""
    from lamina.store.driver import connect, translated

    until = time.monotonic() + within_s
    found = Parked(dead={})
    spaces = sorted(home.spaces.glob("*/views"), key=_changed, reverse=True)
    for view in (view for folder in spaces for view in folder.glob("*.db") if view.is_symlink()):
        if time.monotonic() > until:
            found.complete = False
            break
        try:
            with translated(view):
                db = connect(view, readonly=True)
                try:
                    dead = db.execute("SELECT count(*) FROM dead").fetchone()[0]
                    why = db.execute("SELECT type, id, error FROM dead ORDER BY seq DESC LIMIT 1").fetchone()
                    refused = db.execute("SELECT coalesce(sum(tokens), 0) FROM refused").fetchone()[0]
                    saved = _saved(db) if view.stem == "offload" else 0
                    turns, spent = _outcomes(db) if view.stem == "atoms" else (None, 0)
                finally:
                    db.close()
        except LaminaError:
            continue
        found.dead[view.stem] = found.dead.get(view.stem, 0) + dead
        found.refused_tokens += refused
        found.saved_tokens += saved
        found.spent_tokens += spent
        if turns is not None:
            known = found.turns.get(view.stem, Outcomes())
            found.turns[view.stem] = Outcomes(*map(sum, zip(astuple(known), astuple(turns), strict=True)))
        if why is not None:
            kind, id, error = why
            found.last.setdefault(view.stem, f"{kind or 'no event'} {id}: {error}")
    return found


def _saved(db: Connection) -> int:
    return int(db.execute("SELECT coalesce(sum(result_tokens - stub_tokens), 0) FROM saved").fetchone()[0])


def _outcomes(db: Connection) -> tuple[Outcomes, int]:
    """Turns by outcome (one whose fold failed is parked too), and the tokens of decisions and of attempts."""
    by = dict(db.execute("SELECT outcome, count(*) FROM turns GROUP BY outcome"))
    unfolded = db.execute(
        "SELECT count(*) FROM dead WHERE type IN ('turn.recorded', 'tool.returned', 'memory.stated')"
    ).fetchone()[0]
    spent = int(db.execute("SELECT coalesce(sum(tokens), 0) FROM decisions").fetchone()[0])
    return Outcomes(extracted=by.get(1, 0), waiting=by.get(0, 0), parked=by.get(2, 0) + unfolded), spent


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def waiting_events(home: Home) -> int:
    """Events in outboxes, by counting their lines."""
    return sum(_lines(path) for path in home.outbox.glob("*.jsonl"))


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except FileNotFoundError:  # it was emptied just now
        return 0
