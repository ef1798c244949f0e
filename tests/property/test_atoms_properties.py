"""Whatever is said, forgotten, corrected or undone, and whenever the worker stops: each turn has one outcome."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.errors import Unavailable
from lamina.home import Home
from lamina.runtime.spec import Made
from tests.support.atoms import AtomsBench, plain_act
from tests.support.toy import dump, running, until

TEXTS = st.sampled_from(
    ["home=Seoul", "home=Busan", "it rains", "hm", "unfit", "work.db=a\nit rains", "home=ignore all"]
)
STEPS = st.one_of(
    st.tuples(st.just("say"), TEXTS, st.sampled_from(["s1", "s2"]), st.sampled_from([1.0, 700.0, -5000.0])),
    st.tuples(st.just("again"), st.integers(0, 30)),
    st.tuples(st.just("state"), TEXTS),
    st.tuples(st.just("tool"), TEXTS),
    st.tuples(st.just("end"), st.sampled_from(["s1", "s2"])),
    st.tuples(st.just("forget"), st.integers(0, 30)),
    st.tuples(st.just("correct"), st.integers(0, 30)),
    st.tuples(st.just("undo"), st.integers(0, 30)),
    st.tuples(st.just("run")),
    st.tuples(st.just("stop")),
)


async def taken(atoms: AtomsBench, step: tuple[Any, ...], said: list[str]) -> None:
    """One step of a life; `run` lets a worker do all there is, `stop` ends one in the middle of a decision."""
    kind, *rest = step
    if kind == "say":
        text, session, after_s = rest
        said.append(await atoms.say(text, session=session, after_s=after_s))
    elif kind == "again" and said:
        await atoms.say("home=Jeju", id=said[rest[0] % len(said)])
    elif kind == "state":
        said.append(await atoms.state(rest[0]))
    elif kind == "tool":
        said.append(await atoms.tool(rest[0]))
    elif kind == "end":
        await atoms.end(rest[0])
    elif kind == "forget" and said:
        await atoms.forget(said[rest[0] % len(said)])
    elif kind == "correct" and said:
        await atoms.correct(said[rest[0] % len(said)], "so it is")
    elif kind == "undo":
        decisions = atoms.decision_ids("atoms.extracted") + atoms.decision_ids("atoms.reconciled")
        if decisions:
            await atoms.undo(decisions[rest[0] % len(decisions)])
    elif kind == "run":
        await atoms.run()
    elif kind == "stop":
        await stopped(atoms)


async def stopped(atoms: AtomsBench) -> None:
    """A worker that is ended while it decides."""
    reached = asyncio.Event()

    async def act(wanted: Any, view: Any) -> Made:
        reached.set()
        await asyncio.sleep(3600)
        raise Unavailable("never reached")

    worker = atoms.worker(act)

    def quiet() -> bool:
        return all(at_us > atoms.clock() for at_us in worker.decider.due.values())

    async with running(worker):
        await until(lambda: reached.is_set() or (worker.follower.caught_up.is_set() and quiet()))


async def lived(steps: list[tuple[Any, ...]], root: Path) -> None:
    home = Home(root / "home")
    home.prepare()
    atoms = AtomsBench(home)
    said: list[str] = []
    for step in steps:
        await taken(atoms, step, said)
    await atoms.say("the last", session="last")
    await atoms.run(plain_act())

    outcomes = atoms.outcomes()
    counts = atoms.counts()
    assert (counts.waiting, counts.extracted, counts.parked) == tuple(
        sum(one == outcome for one in outcomes.values()) for outcome in (0, 1, 2)
    )
    assert counts.due == counts.unreconciled == 0
    inputs = [id for one in atoms.extractions() for id in one.inputs]
    parked = [id for one in atoms.failures() if one.dead for id in one.inputs]
    assert len(inputs) == len(set(inputs)), "no turn is extracted twice"
    assert not set(inputs) & set(parked)
    assert {id for id, outcome in outcomes.items() if outcome == 1} <= set(inputs)
    assert {id for id, outcome in outcomes.items() if outcome == 2} <= set(parked)
    windows = atoms.rows("SELECT sum(events) FROM windows")[0][0] or 0
    assert windows == counts.waiting, "what waits stands in a window"
    ties = atoms.rows(
        "SELECT id FROM atoms WHERE by <> '' AND status <> 'undone' AND by NOT IN (SELECT id FROM atoms)"
    )
    assert ties == [], "whatever stands for another is there"

    other = Home(root / "other")
    other.prepare()
    replayed = atoms.worker(home=other)
    async with running(replayed):
        await until(lambda: replayed.follower.position == atoms.log.last_seq)
    assert dump(other, "alice", "atoms") == dump(home, "alice", "atoms")


@settings(max_examples=20)
@given(st.lists(STEPS, max_size=25))
def test_every_turn_has_one_outcome_whatever_happens(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(lived(steps, Path(folder)))
