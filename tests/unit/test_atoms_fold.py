"""The atoms service over a log in memory: windows, outcomes, standing, and taking things back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lamina.atoms.act import BuiltinAct
from lamina.atoms.turns import Turn
from lamina.errors import Invalid
from lamina.events import DeadRetried
from lamina.home import Home
from lamina.ids import atom_id
from lamina.knowledge import Atom
from lamina.runtime import Wanted
from lamina.runtime.spec import Made
from lamina.store import View
from tests.support.atoms import AtomsBench, plain_act
from tests.support.toy import dump, running, until


@pytest.fixture
def atoms(home: Home) -> AtomsBench:
    return AtomsBench(home)


async def windows(atoms: AtomsBench) -> list[tuple[str, ...]]:
    """The windows of what was extracted, as ids."""
    found: list[tuple[str, ...]] = []
    for one in atoms.extractions():
        left = list(one.inputs)
        for size in one.windows:
            found.append(tuple(left[:size]))
            left = left[size:]
    return found


async def test_windows_are_cut_after_one_two_four_and_every_five_turns(atoms: AtomsBench) -> None:
    for n in range(1, 16):
        await atoms.say(f"fact {n}", id=f"t{n}")
    await atoms.run()

    sizes = [len(window) for window in await windows(atoms)]
    assert sizes == [1, 1, 2, 5, 5]
    assert atoms.outcomes()["t15"] == 0
    assert atoms.counts().waiting == 1
    assert atoms.counts().extracted == 14


async def test_a_session_that_ends_leaves_nothing_open(atoms: AtomsBench) -> None:
    for n in range(1, 4):
        await atoms.say(f"fact {n}", id=f"t{n}")
    await atoms.end()
    await atoms.run()

    assert await windows(atoms) == [("t1",), ("t2",), ("t3",)]
    assert atoms.counts().open == 0


async def test_a_gap_between_event_times_cuts_and_tool_results_do_not_count(atoms: AtomsBench) -> None:
    for n in range(1, 5):
        await atoms.say(f"fact {n}", id=f"t{n}")
    await atoms.say("fact 5", id="t5")
    await atoms.tool("output", id="c1")
    await atoms.say("fact 6", id="t6", after_s=601)
    await atoms.end()
    await atoms.run()

    assert await windows(atoms) == [("t1",), ("t2",), ("t3", "t4"), ("t5", "c1"), ("t6",)]


async def test_a_stated_memory_is_a_window_of_its_own_and_comes_first(atoms: AtomsBench) -> None:
    await atoms.say("fact 1", id="t1")
    await atoms.state("fact 2", id="m1")
    await atoms.run()

    assert await windows(atoms) == [("m1",), ("t1",)]


async def test_an_open_window_is_due_when_nothing_came_for_600_s(atoms: AtomsBench) -> None:
    for n in range(1, 4):
        await atoms.say(f"fact {n}", id=f"t{n}")
    last_us = list(atoms.log.messages.values())[-1].at_us
    atoms.clock.now_us = last_us + 599_000_000
    worker = atoms.worker()
    async with running(worker):
        await atoms.settled(worker)
        await until(lambda: worker.decider.due.get("alice", 0) == last_us + 600_000_000)
        assert atoms.outcomes()["t3"] == 0
        atoms.clock.pass_s(1.5)
        worker.decider.stop_waiting()
        await until(lambda: atoms.outcomes()["t3"] == 1)
        await atoms.settled(worker)

    assert (await windows(atoms))[-1] == ("t3",)
    assert atoms.counts().open == 0


async def test_what_comes_while_an_idle_cut_is_decided_waits_in_the_same_window(atoms: AtomsBench) -> None:
    async def act(wanted: Any, view: Any) -> Any:
        if wanted.inputs == ("t3",):
            await atoms.say("fact 4", id="t4")
        return await plain_act()(wanted, view)

    for n in range(1, 4):
        await atoms.say(f"fact {n}", id=f"t{n}")
    atoms.clock.now_us = list(atoms.log.messages.values())[-1].at_us + 601_000_000
    await atoms.run(act)

    assert atoms.outcomes() == {"t1": 1, "t2": 1, "t3": 1, "t4": 1}
    assert await windows(atoms) == [("t1",), ("t2",), ("t3",), ("t4",)]


async def test_a_window_that_cannot_be_taken_is_parked_and_the_others_go_on(atoms: AtomsBench) -> None:
    await atoms.say("fact 1", id="t1")
    await atoms.say("unfit", id="t2")
    await atoms.say("fact 3", id="t3")
    await atoms.end()
    await atoms.run()

    assert atoms.outcomes() == {"t1": 1, "t2": 2, "t3": 1}
    state = atoms.counts()
    assert (state.waiting, state.extracted, state.parked, state.due) == (0, 2, 1, 0)
    reason = atoms.rows("SELECT d.error FROM turns t JOIN decisions d ON d.id = t.decision WHERE t.outcome = 2")
    assert reason == [("Invalid: this turn cannot be taken",)]


async def test_what_was_parked_waits_again_whole_when_it_is_retried(atoms: AtomsBench) -> None:
    long = "fact " * 300 + "unfit"
    await atoms.say(long, id="t1")
    await atoms.say("fact 2", id="t2")
    await atoms.run()
    (target,) = [one[0] for one in atoms.rows("SELECT id FROM decisions WHERE kind = 'dead'")]
    again = DeadRetried(service="atoms", target=target, step="atoms.extract", inputs=("t1", "nobody"))
    seen: list[str] = []

    def healed(window: Sequence[Turn], context: Sequence[Turn] = ()) -> tuple[Atom, ...]:
        seen.extend(turn.text for turn in window)
        return ()

    await atoms.publish(again, session="")
    await atoms.publish(again, session="")
    await atoms.run(BuiltinAct(healed, name="healed", version="1"))

    assert seen == [long]
    assert atoms.outcomes() == {"t1": 1, "t2": 1}
    state = atoms.counts()
    assert (state.waiting, state.extracted, state.parked, state.due) == (0, 2, 0, 0)


async def test_a_reconciliation_that_was_given_up_is_made_when_it_is_retried(atoms: AtomsBench) -> None:
    async def broken(wanted: Wanted, view: View) -> Made:
        if wanted.step == "atoms.reconcile":
            raise Invalid("not today")
        return await plain_act()(wanted, view)

    await atoms.say("home=Seoul", id="t1")
    await atoms.say("home=Busan", id="t2")
    await atoms.run(broken)
    assert atoms.standing() == {"home=Seoul": "active", "home=Busan": "active"}
    for failure, id in zip(atoms.failures(), atoms.decision_ids("step.failed"), strict=True):
        await atoms.publish(
            DeadRetried(service="atoms", target=id, step=failure.step, inputs=failure.inputs), session=""
        )
    await atoms.run()

    assert atoms.standing() == {"home=Seoul": "superseded", "home=Busan": "active"}


async def test_atoms_know_their_sources_and_turns_their_atoms(atoms: AtomsBench) -> None:
    await atoms.say("hm\nhome=Seoul", id="t1")
    await atoms.run()

    decision = atoms.decision_ids("atoms.extracted")[0]
    id = atom_id(decision, 0)
    assert atoms.rows("SELECT id, sources, said_by, slot, value FROM atoms") == [
        (id, '[{"id":"t1","start":3,"end":13}]', "user", "home", "Seoul")
    ]
    assert atoms.rows("SELECT atoms, decision FROM turns") == [(f'["{id}"]', decision)]
    assert atoms.rows("SELECT rowid FROM atoms_fts WHERE atoms_fts MATCH 'seoul'") == [(1,)]


async def test_newer_supersedes_same_reinforces_and_late_comers_are_history(atoms: AtomsBench) -> None:
    await atoms.say("home=Seoul", id="t1")
    await atoms.say("home=Busan", id="t2")
    await atoms.say("home=Busan\nit rains", id="t3")
    await atoms.say("it rains", id="t4", session="other")
    await atoms.say("home=Jeju", id="t5", session="old", at_us=atoms.now_us - 10**12)
    await atoms.end()
    await atoms.run()

    assert atoms.atoms() == {
        "home=Seoul": ("superseded", 1),
        "home=Busan": ("active", 2),
        "home=Jeju": ("superseded", 1),
        "it rains": ("active", 2),
    }
    by = atoms.rows("SELECT a.text, b.text FROM atoms a JOIN atoms b ON b.id = a.by WHERE a.status = 'superseded'")
    assert sorted(by) == [("home=Jeju", "home=Seoul"), ("home=Seoul", "home=Busan")]


async def test_two_speakers_contradict_each_other_until_one_gives_in(atoms: AtomsBench) -> None:
    await atoms.say("party=May", id="t1", name="Ann")
    await atoms.say("party=June", id="t2", name="Bo")
    await atoms.run()
    assert atoms.standing() == {"party=May": "contradicted", "party=June": "contradicted"}

    await atoms.say("party=June", id="t3", name="Ann")
    await atoms.end()
    await atoms.run()
    assert atoms.rows("SELECT text, said_by, status FROM atoms ORDER BY n") == [
        ("party=May", "Ann", "superseded"),
        ("party=June", "Bo", "active"),
        ("party=June", "Ann", "active"),
    ]


async def test_undoing_an_extraction_brings_back_what_it_superseded(atoms: AtomsBench) -> None:
    await atoms.say("home=Seoul\nit rains", id="t1")
    await atoms.run()
    before = dump(atoms.home, "alice", "atoms")
    await atoms.say("home=Busan\nit rains\nparty=May", id="t2")
    await atoms.run()
    assert atoms.standing()["home=Seoul"] == "superseded"
    assert atoms.atoms()["it rains"] == ("active", 2)

    await atoms.undo(atoms.decision_ids("atoms.extracted")[1])
    await atoms.run()

    after = dump(atoms.home, "alice", "atoms")
    assert atoms.standing() == {
        "home=Seoul": "active",
        "it rains": "active",
        "home=Busan": "undone",
        "party=May": "undone",
    }
    assert [row for row in after["atoms"] if row in before["atoms"]] == before["atoms"], "exactly as it was"


async def test_undoing_a_reconciliation_leaves_the_atoms(atoms: AtomsBench) -> None:
    await atoms.say("home=Seoul", id="t1")
    await atoms.say("home=Busan", id="t2")
    await atoms.run()
    await atoms.undo(atoms.decision_ids("atoms.reconciled")[0])
    await atoms.run()

    assert atoms.standing() == {"home=Seoul": "active", "home=Busan": "active"}


async def test_undoing_the_middle_of_a_chain_keeps_the_oldest_below_the_newest(atoms: AtomsBench) -> None:
    for n, place in enumerate(("Seoul", "Busan", "Jeju"), 1):
        await atoms.say(f"home={place}", id=f"t{n}", session=f"s{n}")
        await atoms.run()
    await atoms.undo(atoms.decision_ids("atoms.extracted")[1])
    await atoms.run()

    assert atoms.standing() == {"home=Seoul": "superseded", "home=Busan": "undone", "home=Jeju": "active"}


async def test_forgetting_a_turn_takes_its_atoms_and_words(atoms: AtomsBench) -> None:
    await atoms.say("home=Seoul\nit rains", id="t1")
    await atoms.say("home=Busan\nit rains", id="t2")
    await atoms.run()
    await atoms.forget("t2")
    await atoms.run()

    assert atoms.atoms() == {"home=Seoul": ("active", 1), "it rains": ("active", 1)}
    assert atoms.rows("SELECT rowid FROM atoms_fts WHERE atoms_fts MATCH 'busan'") == []
    assert atoms.outcomes() == {"t1": 1}

    await atoms.say("it rains", id="t3")
    await atoms.end()
    await atoms.run()
    await atoms.forget("t1")
    await atoms.run()
    assert atoms.atoms() == {"it rains": ("active", 1)}
    assert atoms.rows("SELECT sources FROM atoms") == [('[{"id":"t3","start":0,"end":8}]',)]


async def test_forgetting_what_waits_leaves_nothing_due(atoms: AtomsBench) -> None:
    await atoms.say("fact 1", id="t1")
    await atoms.forget("t1")
    await atoms.run()

    assert atoms.extractions() == []
    assert atoms.counts().due == atoms.counts().waiting == 0
    assert atoms.rows("SELECT * FROM windows") == []


async def test_a_correction_of_an_atom_or_of_a_turn_holds(atoms: AtomsBench) -> None:
    await atoms.say("home=Seoul", id="t1")
    await atoms.run()
    (id,) = atoms.rows("SELECT id FROM atoms")[0]
    correction = await atoms.correct(id, "lives in Busan")
    await atoms.correct("t2", "it snows")
    await atoms.say("it rains", id="t2")
    await atoms.correct("t2", "it snows", id="again")
    await atoms.run()

    assert atoms.standing() == {
        "home=Seoul": "superseded",
        "lives in Busan": "active",
        "it rains": "superseded",
        "it snows": "active",
    }
    row = atoms.rows("SELECT type, slot, sources FROM atoms WHERE text = 'lives in Busan'")
    assert row == [("persona", "home", f'[{{"id":"{correction}","start":0,"end":14}}]')]
    await atoms.undo(correction)
    await atoms.run()
    assert atoms.standing()["home=Seoul"] == "active"


async def test_quarantined_atoms_take_part_in_nothing(atoms: AtomsBench) -> None:
    await atoms.say("home=Seoul", id="t1")
    await atoms.say("home=ignore all", id="t2")
    await atoms.run()

    assert atoms.standing() == {"home=Seoul": "active", "home=ignore all": "quarantined"}


async def test_a_replay_gives_the_same_and_asks_nobody(atoms: AtomsBench) -> None:
    for n in range(1, 12):
        await atoms.say(f"home={n % 3}\nfact {n % 4}", id=f"t{n}", session=f"s{n % 2}")
    await atoms.run()
    made = len(atoms.log.messages)
    other = Home(atoms.home.path.with_name("other"))
    other.prepare()
    replayed = atoms.worker(home=other)
    async with running(replayed):
        await until(lambda: replayed.follower.position == atoms.log.last_seq)

    assert len(atoms.log.messages) == made
    assert dump(other, "alice", "atoms") == dump(atoms.home, "alice", "atoms")
