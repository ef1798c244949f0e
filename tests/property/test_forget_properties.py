"""After any random set is forgotten, the memory is that of a log that never had it."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina import events, ids, times
from lamina.bus import Bus
from lamina.bus.memory import MemoryBus, MemoryLog
from lamina.events import MemoryCorrected, MemoryStated, SessionEnded, ToolReturned, TurnRecorded
from lamina.forget.run import forget
from lamina.home import Home
from lamina.requests import Forget
from lamina.store.driver import connect
from lamina.verify.run import verify
from tests.support.mixed import decided, folded
from tests.support.traces import traces

SPACE = "alice"
START_US = 1_764_000_000_000_000
SESSIONS = ("s0", "s1", "작업", "会话")
SAYS = (
    "I live in town {}.",
    "저는 {} 좋아해요.",
    "我的狗叫{}。",
    "私は{}が好きです。",
    "Always use {} for tests.",
    "ok, {}",
)
SAID = st.tuples(st.sampled_from(["turn", "tool", "state", "end", "correct"]), st.sampled_from(SESSIONS))
LOGS = st.lists(SAID, min_size=1, max_size=30)
WANTED = st.one_of(
    st.tuples(st.just("events"), st.sets(st.integers(0, 29), min_size=1, max_size=8)),
    st.tuples(st.just("turns"), st.sets(st.integers(0, 29), min_size=1, max_size=8)),
    st.tuples(st.just("nodes"), st.sets(st.integers(0, 29), min_size=1, max_size=8)),
    st.tuples(st.just("sessions"), st.sets(st.integers(0, 3), min_size=1, max_size=2)),
    st.tuples(st.just("matches"), st.sets(st.integers(0, 29), min_size=1, max_size=3)),
    st.tuples(st.just("all"), st.just({0})),
)


def word(n: int) -> str:
    """A word that only event `n` says, in a script of its own."""
    digits = f"{n:02d}"
    letters = ("abcdefghij", "가나다라마바사아자차", "甲乙丙丁戊己庚辛壬癸", "あいうえおかきくけこ")[n % 4]
    mark = ("zqx", "꿻", "龘靐", "ヴヰヱ")[n % 4]
    return mark + "".join(letters[int(one)] for one in digits) + mark


def data(n: int, kind: str) -> Any:
    text = SAYS[n % len(SAYS)].format(word(n))
    if kind == "tool":
        return ToolReturned(tool="run", arguments={"q": n}, result=f"{text}\n" * (1 + n * 40), call_id=f"own{n}")
    if kind == "state":
        return MemoryStated(text=text)
    if kind == "correct":
        return MemoryCorrected(target=f"e{max(0, n - 1)}", text=text)
    return SessionEnded() if kind == "end" else TurnRecorded(role="user", text=text, turn_id=f"own{n}")


class Clock:
    """Arrival times that are those of the sequence."""

    def __init__(self) -> None:
        self.now_us = START_US

    def __call__(self) -> int:
        self.now_us += 1_000_000
        return self.now_us


async def log_of(said: list[tuple[str, str]], without: set[str] = frozenset()) -> MemoryLog:  # type: ignore[assignment]
    """The log; in the place of what it is to be without stands something of another space."""
    log = MemoryLog(now_us=Clock())
    bus = MemoryBus(log)
    for n, (kind, session) in enumerate(said):
        space = "bob" if f"e{n}" in without else SPACE
        time = times.from_micros(START_US + n * 1_000_000)
        event = events.make(data(n, kind), id=f"e{n}", space=space, session=session, time=time)
        await bus.publish(ids.event_subject(space, event.type), events.encode(event))
    return log


def wanted_of(said: list[tuple[str, str]], wanted: tuple[str, set[int]]) -> tuple[Forget | None, set[str]]:
    """The request, and the ids that it means; no request where it would mean nothing."""
    way, numbers = wanted
    kinds = dict(enumerate(kind for kind, _ in said))
    if way == "all":
        return Forget(all=True), {f"e{n}" for n in kinds}
    if way == "sessions":
        names = {SESSIONS[n] for n in numbers} & {session for _, session in said}
        meant = {f"e{n}" for n, (_, session) in enumerate(said) if session in names}
        return (Forget(sessions=tuple(sorted(names))) if names else None), meant
    fitting = {"turns": ("turn", "tool"), "nodes": ("tool",), "matches": ("turn", "tool", "state", "correct")}
    meant_n = sorted(n for n in numbers if n in kinds and kinds[n] in fitting.get(way, tuple(kinds.values())))
    named = {
        "events": [f"e{n}" for n in meant_n],
        "turns": [f"own{n}" for n in meant_n],
        "nodes": [ids.node_id(f"e{n}") for n in meant_n],
        "matches": [word(n) for n in meant_n],
    }[way]
    request = msgspec.convert({way: named}, Forget)
    return (request if named else None), {f"e{n}" for n in meant_n}


def tables(home: Home, service: str, names: tuple[str, ...]) -> dict[str, list[tuple[Any, ...]]]:
    path = (home.spaces / SPACE / "views" / f"{service}.db").resolve()
    if not path.exists():
        return {name: [] for name in names}
    db: Any = connect(path, readonly=True)
    try:
        found = {name: sorted(db.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in names}
        if service == "journal":
            db.execute("PRAGMA query_only=OFF")
            db.execute("CREATE VIRTUAL TABLE temp.v USING fts5vocab('main', 'turns_fts', 'instance')")
            found["words"] = db.execute("SELECT * FROM temp.v").fetchall()
    finally:
        db.close()
    return found


def memory(home: Home) -> dict[str, Any]:
    """L0, references and texts that want vectors, with the rendered files."""
    root = home.spaces / SPACE
    found: dict[str, Any] = {
        "journal": tables(home, "journal", ("turns", "sessions")),
        "offload": tables(home, "offload", ("refs", "saved", "canvases")),
        "vectors": tables(home, "vectors", ("texts",)),
    }
    for folder in ("refs", "canvas"):
        for path in sorted((root / folder).glob("*")):
            found[f"{folder}/{path.name}"] = path.read_bytes()
    return found


async def _check(home: Home, clean: Home, said: list[tuple[str, str]], wanted: tuple[str, set[int]]) -> None:
    request, meant = wanted_of(said, wanted)
    log = await log_of(said)
    bus: Bus = MemoryBus(log)
    await decided(home, log)
    if request is None:
        return

    done = await forget(home, bus, SPACE, request)

    assert sum(done.said.values()) == len(meant)
    assert meant <= set(done.ids)
    assert done.found == ()
    gone = [word(int(id[1:])) for id in sorted(meant) if said[int(id[1:])][0] != "end"]
    assert await traces(home, bus, gone) == []
    assert (await verify(home, bus, [SPACE])).findings == ()
    without = await log_of(said, meant)
    if len(meant) < len(said):
        await folded(clean, without)
        assert memory(home) == memory(clean)
    await decided(home, log)
    assert await traces(home, bus, gone) == []
    assert (await verify(home, bus, [SPACE])).findings == ()
    _sourced(home, meant)
    assert (await forget(home, bus, SPACE, Forget(all=True, dry_run=True))).said.get("turn.recorded", 0) == sum(
        kind == "turn" and f"e{n}" not in meant for n, (kind, _) in enumerate(said)
    )


def _sourced(home: Home, gone: set[str]) -> None:
    """Every atom has a source, and none that is gone."""
    for (sources,) in tables(home, "atoms", ("(SELECT sources FROM atoms)",)).popitem()[1]:
        assert sources != "[]"
        assert not any(f'"{id}"' in sources for id in gone)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(said=LOGS, wanted=WANTED)
@pytest.mark.timeout(600)
def test_after_forgetting_the_memory_is_that_of_a_log_that_never_had_it(
    said: list[tuple[str, str]], wanted: tuple[str, set[int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        homes = [Home(Path(folder) / name) for name in ("home", "clean")]
        for home in homes:
            home.prepare()
        asyncio.run(_check(homes[0], homes[1], said, wanted))
