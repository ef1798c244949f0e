"""Where a model extracts and reconciles: answers are taken, failures paid and waited for, and the rules go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.atoms.act import BuiltinAct
from lamina.atoms.act_model import BAD_ANSWERS, ModelAct
from lamina.atoms.service import MODEL, WAITS, made
from lamina.bus.memory import MemoryBus
from lamina.config import LlmConfig
from lamina.home import Home
from lamina.llm import BadAnswer, ModelUnavailable, Source
from lamina.llm.errors import ModelError
from lamina.runtime.worker import Worker
from tests.support.atoms import AtomsBench, plain
from tests.support.llm import MODEL as NAME
from tests.support.llm import Scripted
from tests.support.toy import running, until


@pytest.fixture
def atoms(tmp_path: Path) -> AtomsBench:
    home = Home(tmp_path)
    home.prepare()
    return AtomsBench(home)


def atom(text: str, quote: str, **more: Any) -> dict[str, Any]:
    return {"type": "persona", "text": text, "quotes": [{"source": "t1", "quote": quote}], "priority": 80} | more


def found(*items: dict[str, Any]) -> str:
    return json.dumps({"atoms": items})


def moved(*operations: dict[str, str]) -> str:
    return json.dumps({"operations": operations})


def worker(atoms: AtomsBench, model: Scripted, *, tokens_per_day: int = 0) -> Worker[Any]:
    config = LlmConfig(base_url="http://127.0.0.1:1/v1", model=NAME, tokens_per_day=tokens_per_day)
    act = ModelAct(Source(config, model), BuiltinAct(plain, name="plain", version="1"))
    service = replace(made(act, MODEL), max_attempts=WAITS)
    return Worker(service, MemoryBus(atoms.log), atoms.home, clock_us=atoms.clock)


async def ran(atoms: AtomsBench, model: Scripted, **more: int) -> None:
    one = worker(atoms, model, **more)
    async with running(one):
        await atoms.settled(one)


async def test_what_a_model_finds_is_an_event_with_its_cost_and_what_was_dropped(atoms: AtomsBench) -> None:
    await atoms.say("I moved to Graz last week", id="t1")
    answer = found(atom("The user moved to Graz.", "I moved to Graz"), atom("The user is 40.", "nowhere"))
    await ran(atoms, Scripted(answer))

    (event,) = atoms.extractions()
    assert (event.extractor, event.model, event.tokens, event.raw) == ("model", NAME, 100, answer)
    assert event.dropped == {"quote_not_found": 1}
    assert atoms.standing() == {"The user moved to Graz.": "active"}
    assert atoms.rows("SELECT tokens FROM decisions WHERE kind = 'extract'") == [(100,)]


@pytest.mark.parametrize("error", [ModelUnavailable("away", 7), BadAnswer("no JSON", 7)])
async def test_a_failure_is_paid_and_tried_again(atoms: AtomsBench, error: ModelError) -> None:
    await atoms.say("I moved to Graz", id="t1")
    model = Scripted(error, found(atom("The user moved to Graz.", "I moved to Graz")))
    one = worker(atoms, model)
    async with running(one):
        await until(lambda: atoms.failures())
        assert atoms.outcomes() == {"t1": 0}, "it waits"
        atoms.clock.pass_s(10)
        one.decider.stop_waiting()
        await atoms.settled(one)

    (failure,) = atoms.failures()
    assert (failure.tokens, failure.dead) == (7, False)
    assert atoms.standing() == {"The user moved to Graz.": "active"}
    assert atoms.rows("SELECT sum(tokens) FROM decisions") == [(107,)]


async def test_after_three_answers_of_no_use_the_rules_take_the_window_and_the_model_the_next(
    atoms: AtomsBench,
) -> None:
    await atoms.say("first fact", id="t1")
    await atoms.say("second fact", id="t2")
    model = Scripted(*[BadAnswer("no JSON", 1)] * BAD_ANSWERS, found(atom("The second fact.", "second fact")))
    one = worker(atoms, model)
    async with running(one):
        for attempt in range(1, BAD_ANSWERS + 1):
            await until(lambda: len(atoms.failures()) == attempt)  # noqa: B023 - awaited within the loop
            atoms.clock.pass_s(1_000)
            one.decider.stop_waiting()
        await atoms.settled(one)

    assert [event.extractor for event in atoms.extractions()] == ["plain", "model"]
    assert set(atoms.standing()) == {"first fact", "The second fact."}


async def test_at_the_budget_the_rules_go_on(atoms: AtomsBench) -> None:
    await atoms.say("first fact", id="t1")
    model = Scripted(found())
    await ran(atoms, model, tokens_per_day=10)

    assert model.asked == []
    assert [event.extractor for event in atoms.extractions()] == ["plain"]


async def both(atoms: AtomsBench, verb: str, *, name: str | None = None) -> Scripted:
    """Two statements alike of which the rules know nothing, the model's verb between them."""
    await atoms.say("tea is my morning drink", id="t1")
    await atoms.say("coffee is my morning drink", id="t2", name=name)
    model = Scripted(
        found(atom("tea is my morning drink", "tea is my morning drink")),
        found(atom("coffee is my morning drink", "coffee is my morning drink")),
        moved({"atom": "n1", "verb": verb, "target": "k1", "reason": "another drink"}),
    )
    await ran(atoms, model)
    return model


async def test_the_model_decides_what_the_rules_leave_open(atoms: AtomsBench) -> None:
    model = await both(atoms, "supersede")

    assert [ask.name for ask in model.asked] == ["atoms", "atoms", "operations"]
    assert atoms.standing() == {"tea is my morning drink": "superseded", "coffee is my morning drink": "active"}
    last = atoms.reconciliations()[-1]
    assert (last.model, last.tokens, last.rules) == (NAME, 100, "builtin-1")
    assert atoms.rows("SELECT sum(tokens) FROM decisions") == [(300,)]


async def test_of_two_speakers_the_model_may_not_choose(atoms: AtomsBench) -> None:
    await both(atoms, "supersede", name="Ada")

    assert set(atoms.standing().values()) == {"contradicted"}


async def test_an_operation_that_names_nobody_is_not_followed(atoms: AtomsBench) -> None:
    await atoms.say("tea is my morning drink", id="t1")
    await atoms.say("coffee is my morning drink", id="t2")
    await ran(
        atoms,
        Scripted(
            found(atom("tea is my morning drink", "tea is my morning drink")),
            found(atom("coffee is my morning drink", "coffee is my morning drink")),
            moved({"atom": "n1", "verb": "supersede", "target": "k9"}),
        ),
    )

    assert set(atoms.standing().values()) == {"active"}
    assert atoms.reconciliations()[-1].dropped == {"not_decided": 1, "unknown_target": 1}


async def test_what_the_rules_know_no_model_is_asked(atoms: AtomsBench) -> None:
    await atoms.say("I live in Graz", id="t1")
    await atoms.say("I live in Wien", id="t2")
    model = Scripted(
        found(atom("The user lives in Graz.", "I live in Graz", slot="user.home", value="Graz")),
        found(atom("The user lives in Wien.", "I live in Wien", slot="user.home", value="Wien")),
    )
    await ran(atoms, model)

    assert [ask.name for ask in model.asked] == ["atoms", "atoms"]
    assert atoms.standing() == {"The user lives in Graz.": "superseded", "The user lives in Wien.": "active"}
