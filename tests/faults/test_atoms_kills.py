"""kill -9 of the atoms service, again and again, while turns are imported and the model is as flaky as they come.

Every turn has exactly one outcome, no atom is there twice, and the tokens of every call that was answered stand in
the log, but for those of the one question that was under way at a kill: what it cost nobody was left to write down.
The view is then made again from the log, without a model, and is the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina import events, ids, times
from lamina.atoms.work import State
from lamina.bus.local import local_bus
from lamina.bus.nats import NatsBus
from lamina.bus.port import Outgoing
from lamina.bus.server import Server
from lamina.events import AtomsExtracted, SessionEnded, StepFailed, TurnRecorded
from lamina.home import Home
from lamina.llm.endpoint import ATTEMPTS
from lamina.runtime.worker import Worker
from lamina.tokens import count
from tests.support.atoms import START_US, plain_service
from tests.support.llm import Reply, declined, endpoint, said
from tests.support.toy import applied, dump, rows, running, view_file

KILLS = int(os.environ.get("LAMINA_FAULTS", "3"))
TURNS = min(2_000, max(200, 20 * KILLS))
SESSION_TURNS = 50
BATCH = 100
MOST_CALLS = 4
IDLE_S = 20.0
SPACE = "alice"
WORKER = Path(__file__).parent.parent / "support" / "atoms_worker.py"
pytestmark = pytest.mark.timeout(120 + 15 * KILLS)


@dataclass
class Model:
    """The flaky model: what it was asked by each process, and what each call cost.

    Costs are large and random, so that a sum of some of them is no sum of others.
    """

    rng: random.Random
    loop: asyncio.AbstractEventLoop
    costs: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    kinds: Counter[str] = field(default_factory=Counter)

    def reply(self, body: dict[str, Any]) -> Reply:
        system, user = (message["content"] for message in body["messages"])
        cost = self.rng.randrange(10_000, 10_000_000)
        kind = self.rng.choice(
            ("good",) * 11 + ("fenced", "cut", "prose", "broken", "busy", "down", "empty", "nothing")
        )
        estimate = count(system) + count(user)
        replies: dict[str, Callable[[], tuple[Reply, int]]] = {
            "good": lambda: (said(answer(user), usage=cost), cost),
            "fenced": lambda: (said(f"Here you are:\n```json\n{answer(user)}\n```", usage=cost), cost),
            "cut": lambda: (said(answer(user)[:-9], usage=cost), cost),
            "prose": lambda: (said("I am sorry, there is nothing I can say.", usage=cost), cost),
            "broken": lambda: (Reply(body=b'{"choices": [', promised=4_000), estimate),
            "busy": lambda: (declined(429), 0),
            "down": lambda: (declined(500, usage=cost), cost),
            "empty": lambda: (said("", usage=cost), cost),
            "nothing": lambda: (said('{"atoms": []}', usage=cost), cost),
        }
        reply, spent = replies[kind]()
        self.kinds[kind] += 1
        self.costs.setdefault(int(body["model"]), []).append((user, spent))
        self.loop.call_soon_threadsafe(self.asked.set)
        return reply

    async def calls(self, process: int, most: int) -> None:
        """Return once this process has asked so often."""
        while len(self.costs.get(process, ())) < most:
            self.asked.clear()
            await self.asked.wait()


def answer(user: str) -> str:
    """An atom of every turn in the window; of new atoms beside known ones, that nothing becomes of them but atoms."""
    if "WINDOW:\n" not in user:
        return json.dumps({"operations": []})
    window = user.partition("WINDOW:\n")[2]
    shown = [json.loads(line) for line in window.splitlines() if line.startswith("{")]
    atoms = [
        {
            "quotes": [{"source": turn["ref"], "quote": turn["text"]}],
            **{"type": "episodic", "text": turn["text"], "subject": "user", "slot": "", "value": "", "entities": []},
            **{"priority": 70, "scope": "", "polarity": 0, "valid_from": "", "valid_to": "", "suspicious": False},
        }
        for turn in shown
    ]
    return json.dumps({"atoms": atoms})


def log_of_turns() -> Iterator[Outgoing]:
    for number in range(TURNS):
        session = f"s{number // SESSION_TURNS}"
        last = number % SESSION_TURNS == SESSION_TURNS - 1 or number == TURNS - 1
        text = f"I bought bicycle number {number} in Graz."
        for id, data in ((f"t{number}", TurnRecorded(role="user", text=text)), (f"end-{number}", SessionEnded())):
            if isinstance(data, TurnRecorded) or last:
                time = times.from_micros(START_US + number * 1_000_000)
                event = events.make(data, id=id, space=SPACE, session=session, time=time)
                yield Outgoing(ids.event_subject(ids.token(SPACE), event.type), events.encode(event), id=id)


async def imported(bus: NatsBus, model: Model) -> None:
    """The import goes on while the service is at work and dies."""
    messages = list(log_of_turns())
    for at in range(0, len(messages), BATCH):
        await bus.publish_batch(messages[at : at + BATCH])
        before = sum(map(len, model.costs.values()))
        while sum(map(len, model.costs.values())) < min(before + 5, 2 * KILLS):
            model.asked.clear()
            await model.asked.wait()


class Workers:
    """Processes of the atoms service, one after another, to be killed."""

    def __init__(self, parent: asyncio.subprocess.Process) -> None:
        self._parent = parent
        self._child = 0

    async def start(self, number: int) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.write(b"%d\n" % number)
        self._child = int(await self._line())

    async def kill(self) -> None:
        os.kill(self._child, signal.SIGKILL)
        assert await self._line() == f"ended {-signal.SIGKILL}"

    async def _line(self) -> str:
        assert self._parent.stdout is not None
        return (await self._parent.stdout.readline()).decode().strip()


@contextlib.asynccontextmanager
async def workers(server: Server, home: Home, url: str) -> AsyncIterator[Workers]:
    arguments = (str(WORKER), server.url, str(server.credentials_file), str(home.path), url)
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    parent = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=pipe, stdout=pipe, stderr=nothing)
    try:
        yield Workers(parent)
    finally:
        parent.kill()
        await parent.wait()


async def decided_all(home: Home, bus: NatsBus) -> None:
    """Return once nothing waits: another process does the work, so nobody tells."""
    while True:
        last = await bus.last(f"lamina.ev.*.{ids.token(SPACE)}.>")
        found = rows(view_file(home, SPACE, "atoms"), "SELECT value FROM meta WHERE key = 'state'")
        state = msgspec.json.decode(found[0][0], type=State) if found else State()
        done = state.extracted + state.parked == TURNS and not state.unreconciled
        if done and last is not None and applied(home, SPACE, "atoms") == last.seq:
            return
        await asyncio.sleep(0.05)


def unaccounted(model: Model, told: list[int]) -> list[int]:
    """What each kill left untold: the costs of the calls of each process that no event tells. What is told stands in
    the order of the calls, each event for the calls of one question; only the end of a process may be missing."""
    events_left = [tokens for tokens in told if tokens]
    lost = []
    for process in sorted(model.costs):
        calls = model.costs[process]
        at = 0
        while events_left:
            sums = [sum(cost for _, cost in calls[at : end + 1]) for end in range(at, min(at + ATTEMPTS, len(calls)))]
            if events_left[0] not in sums:
                break
            at += sums.index(events_left.pop(0)) + 1
        left = calls[at:]
        assert len(left) <= ATTEMPTS, f"process {process}: {left}"
        assert len({question for question, _ in left}) <= 1, "more than the one question under way is missing"
        lost.append(sum(cost for _, cost in left))
    assert events_left == [], "tokens are told that no call cost"
    return lost


async def test_every_turn_has_one_outcome_and_every_token_is_told(
    home: Home, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(KILLS)
    async with local_bus(tmp_path / "bus", max_bytes=256 * 1024 * 1024) as (server, bus):
        with endpoint() as scripted:
            model = Model(rng, asyncio.get_running_loop())
            scripted.decide = model.reply
            importing = asyncio.create_task(imported(bus, model))
            async with workers(server, home, scripted.url) as service:
                for number in range(KILLS):
                    await service.start(number)
                    wanted = rng.randint(0, MOST_CALLS)
                    with contextlib.suppress(
                        TimeoutError
                    ):  # there may be nothing left to ask: then it is killed idle
                        async with asyncio.timeout(IDLE_S):
                            await model.calls(number, wanted)
                    await asyncio.sleep(
                        rng.uniform(0, 0.03 if wanted else 0.3)
                    )  # the moment of the kill is the fault
                    await service.kill()
                await service.start(KILLS)
                await importing
                await decided_all(home, bus)
                await service.kill()
        logged = [events.decode(message.data) for message in await all_of(bus)]
        again = Home(tmp_path / "again")
        again.prepare()
        last = await bus.last(f"lamina.ev.*.{ids.token(SPACE)}.>")
        assert last is not None
        refolding = Worker(plain_service(), bus, again)
        async with running(refolding):
            async with asyncio.timeout(60):
                while applied(again, SPACE, "atoms") < last.seq:  # noqa: ASYNC110 - a view on disk tells nobody
                    await asyncio.sleep(0.02)

    view = view_file(home, SPACE, "atoms")
    data = [events.decode_data(event) for event in logged]
    refused = {id for (id,) in rows(view, "SELECT id FROM refused")}
    taken = [one for event, one in zip(logged, data, strict=True) if event.id not in refused]
    outcomes = Counter(id for one in taken if isinstance(one, AtomsExtracted) for id in one.inputs)
    outcomes += Counter(id for one in taken if isinstance(one, StepFailed) and one.dead for id in one.inputs)
    told = [getattr(one, "tokens", 0) for one in data]
    lost = unaccounted(model, told)

    assert outcomes == Counter(f"t{number}" for number in range(TURNS)), "one outcome each"
    assert rows(view, "SELECT count(*), sum(outcome = 0) FROM turns") == [(TURNS, 0)]
    spans = [row[0] for row in rows(view, "SELECT sources FROM atoms")]
    assert len(spans) == len(set(spans)), "no atom twice"
    kept = rows(view, "SELECT coalesce(sum(tokens), 0) FROM decisions")[0][0]
    assert kept + rows(view, "SELECT coalesce(sum(tokens), 0) FROM refused")[0][0] == sum(told)
    assert sum(told) + sum(lost) == sum(cost for calls in model.costs.values() for _, cost in calls)
    assert lost[-1] == 0
    assert len(lost) <= KILLS + 1
    assert dump(again, SPACE, "atoms") == dump(home, SPACE, "atoms"), "the log alone makes the same view"
    figures = {
        **{"kills": KILLS, "turns": TURNS, "atoms": len(spans), "calls": sum(model.kinds.values())},
        **{"replies": dict(model.kinds), "kills_during_a_question": sum(cost > 0 for cost in lost)},
        **{"tokens_told": sum(told), "tokens_under_way_at_a_kill": sum(lost), "refused": len(refused)},
    }
    record_property("figures", json.dumps(figures))


async def all_of(bus: NatsBus) -> list[Any]:
    """Every message of the space, in order."""
    last = await bus.last(f"lamina.ev.*.{ids.token(SPACE)}.>")
    assert last is not None
    found: list[Any] = []
    reader = bus.read([f"lamina.ev.*.{ids.token(SPACE)}.>"], after=0, name="check")
    while not found or found[-1].seq < last.seq:
        found += await reader.fetch(500, 1.0)
    await reader.close()
    return found
