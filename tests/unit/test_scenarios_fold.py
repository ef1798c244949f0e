"""Scenarios from events to files: what belongs together, when it is decided, and what a person may do to it."""

from __future__ import annotations

import pytest

from lamina.events import (
    AtomsExtracted,
    DeadRetried,
    MemoryCorrected,
    MemoryForgotten,
    ScenarioEdited,
    SessionEnded,
    StepFailed,
    TurnRecorded,
)
from lamina.ids import atom_id
from lamina.knowledge import Atom, Span, heat
from lamina.runtime import Due, Wanted
from lamina.scenarios.decide import AFTER_US, APART_US, ARRANGE, LATE_US, State, decide
from lamina.scenarios.grouping import telling
from lamina.text.markdown import line
from tests.support.atoms import START_US
from tests.support.scenarios import Said, Sim

HOUR_S, DAY_S = 3_600, 86_400
MIGRATION = (
    Said("we move the orders database to postgres", 0, "monday"),
    Said("the orders migration uses pg_dump", 60, "monday"),
    Said("pg_dump of the orders database took long", 2 * DAY_S, "wednesday"),
)
CATS = (Said("Momo the cat eats tuna", DAY_S, "cats"), Said("Momo sleeps on the sofa", DAY_S + 60, "cats"))


def learned(*said: Said) -> Sim:
    sim = Sim()
    sim.learn(*said)
    sim.arrange_all()
    return sim


def the(sim: Sim, word: str) -> str:
    """The file whose text holds a word."""
    return next(data.decode() for _, data in sorted(sim.files.items()) if word in data.decode())


# what belongs together


def test_sessions_that_share_telling_words_are_one_scenario() -> None:
    sim = learned(*MIGRATION, *CATS)

    assert sim.groups() == {frozenset(one.text for one in MIGRATION), frozenset(one.text for one in CATS)}
    assert len(sim.episodes()) == 3
    assert the(sim, "pg_dump").count("### ") == 2
    assert the(sim, "Momo").count("### ") == 0


def test_two_projects_are_never_one_scenario() -> None:
    sim = learned(
        Said("the parser drops the last token of a line", 0, "a", "alpha"),
        Said("the parser drops the last token of a line again", HOUR_S, "b", "beta"),
    )

    assert len(sim.groups()) == 2


def test_a_session_of_a_day_is_not_divided_and_a_longer_one_is() -> None:
    within = learned(Said("apples", 0), Said("pears", 20 * HOUR_S))
    longer = learned(Said("apples", 0), Said("pears", 20 * HOUR_S), Said("plums", 30 * HOUR_S))

    assert len(within.episodes()) == 1
    assert len(longer.episodes()) == 3


def test_what_comes_later_may_divide_a_session_that_was_whole() -> None:
    sim = learned(Said("apples", 0), Said("pears", 20 * HOUR_S))
    sim.learn(Said("plums", 30 * HOUR_S))
    sim.arrange_all()

    assert len(sim.episodes()) == 3


def test_a_word_of_many_episodes_lately_tells_less() -> None:
    pair = (Said("gamma delta apple", 20 * DAY_S, "x"), Said("gamma delta plum", 21 * DAY_S, "y"))
    others = tuple(Said(f"gamma delta w{n}a w{n}b", n * DAY_S, f"s{n}") for n in range(0, 20, 2))
    alone = learned(*pair)
    late = learned(*pair)
    late.learn(*others)
    late.arrange_all()

    assert len(alone.groups()) == 1
    assert frozenset(one.text for one in pair) not in late.groups()
    assert late.groups() == learned(*others, *pair).groups()


def test_what_hangs_together_is_not_torn_apart_by_what_comes_later() -> None:
    pair = (Said("gamma delta apple", 0, "x"), Said("gamma delta plum", DAY_S, "y"))
    sim = learned(*pair)
    sim.learn(*(Said(f"gamma delta w{n}a w{n}b", 3 * DAY_S + n * HOUR_S, f"s{n}") for n in range(50)))
    sim.arrange_all()

    assert any(frozenset(one.text for one in pair) <= group for group in sim.groups())


def test_who_speaks_and_numbers_tell_nothing() -> None:
    assert telling("Melanie: I paint 12 sunrises", "melanie") == {"paint", "sunris"} | telling("I", "")
    assert telling("데이터베이스 이전", "") == telling("User: 데이터베이스 이전", "user")


def test_what_was_superseded_is_history_and_what_was_undone_is_gone() -> None:
    sim = Sim()
    sim.learn(*MIGRATION)
    sim.standing[MIGRATION[0].text] = "superseded"
    sim.arrange_all()
    text = the(sim, "pg_dump")

    assert "## No longer so" in text
    assert MIGRATION[0].text not in text.split("## No longer so")[0].split("## Facts")[1]

    sim.standing[MIGRATION[0].text] = "undone"
    sim.learn(Said("something else", 90 * DAY_S, "z"))
    sim.arrange_all()

    assert "postgres" not in the(sim, "pg_dump")


def test_a_merge_is_an_operation_with_a_reason_and_the_earlier_scenario_stays() -> None:
    sim = Sim()
    sim.learn(Said("alpha beta", 0, "a"), Said("gamma delta", 40 * DAY_S, "b"))
    sim.arrange_all()
    first, second = sim.rows("SELECT id FROM scenarios ORDER BY first_us")
    slugs = sim.rows("SELECT slug FROM scenarios ORDER BY first_us")
    sim.learn(Said("alpha beta gamma delta", 2 * HOUR_S, "c"))
    found = sim.arrange()

    merges = [one for one in found.operations if one.verb == "merge"]
    assert [(one.scenario, one.target) for one in merges] == [(first, second)]
    assert "telling words shared" in merges[0].reason
    assert len(sim.groups()) == 1
    assert list(sim.files) == [f"scenarios/{slugs[0]}.md"], "a slug once given stays, the other's file is gone"
    assert sim.rows("SELECT status, merged FROM scenarios WHERE id = ?", second) == [("merged", first)]


def test_a_split_gives_what_is_left_a_scenario_of_its_own() -> None:
    bridge = Said("alpha beta gamma delta", 2 * HOUR_S, "c")
    sim = learned(Said("alpha beta", 0, "a"), bridge, Said("gamma delta", 3 * DAY_S, "b"))
    assert len(sim.groups()) == 1

    sim.standing[bridge.text] = "undone"
    sim.learn(Said("something else", 90 * DAY_S, "z"))
    found = sim.arrange()

    assert {one.verb for one in found.operations} == {"create", "split"}
    assert sim.groups() == {frozenset(["alpha beta"]), frozenset(["gamma delta"]), frozenset(["something else"])}


# when


@pytest.mark.parametrize(
    ("state", "after_us", "due"),
    [
        (State(), 10**15, None),
        (State(pending=1, first_us=0, last_us=0, arranged_us=-(10**10)), 0, AFTER_US),
        (State(pending=1, first_us=0, last_us=0, arranged_us=-(10**10)), AFTER_US, 0),
        (State(pending=2, first_us=0, last_us=60_000_000, arranged_us=-1), 100_000_000, APART_US - 1),
        (State(pending=9, first_us=0, last_us=LATE_US - 1, arranged_us=LATE_US - 2), LATE_US - 1, LATE_US),
        (State(pending=9, first_us=0, last_us=LATE_US - 1, arranged_us=LATE_US - 2), LATE_US, 0),
        (State(pending=1, first_us=0, last_us=0, urgent=True), 0, 0),
    ],
)
def test_is_due_a_little_after_the_atoms_not_too_often_and_not_too_late(
    state: State, after_us: int, due: int | None
) -> None:
    found = decide(state, after_us)

    assert found == (None if due is None else Wanted(ARRANGE, ()) if due == 0 else Due(due))


def extract(sim: Sim, text: str, turn: str) -> str:
    atom = Atom(type="work_fact", text=text, sources=(Span(turn, 0, 1),))
    return sim.fold(
        AtomsExtracted(step="atoms.extract", n=1, inputs=(), windows=(), extractor="x", version="1", atoms=(atom,))
    )


def test_the_end_of_a_session_makes_it_due_at_once() -> None:
    sim = Sim()
    sim.fold(TurnRecorded(role="user", text="a"), id="t1", session="s")
    extract(sim, "a fact", "t1")
    assert not sim.state.urgent

    sim.fold(SessionEnded(), session="s")
    assert sim.state.urgent

    sim.arrange()
    assert not sim.state.urgent
    extract(sim, "what came of its last turns", "t1")
    assert sim.state.urgent


def test_a_session_that_goes_on_has_not_ended() -> None:
    sim = Sim()
    sim.fold(SessionEnded(), session="s")
    sim.fold(TurnRecorded(role="user", text="a"), id="t1", session="s")
    extract(sim, "a fact", "t1")

    assert not sim.state.urgent


def test_what_was_said_long_before_it_came_is_due_at_once() -> None:
    sim = Sim()
    sim.fold(TurnRecorded(role="user", text="a"), id="t1", session="s", at_us=START_US - 2 * LATE_US)
    extract(sim, "an imported fact", "t1")

    assert sim.state.urgent


def test_after_the_last_failure_its_inputs_wait_no_more_and_a_retry_brings_them_back() -> None:
    sim = Sim()
    made = sim.learn(*CATS)
    failed = sim.fold(StepFailed(step=ARRANGE, n=1, inputs=(made,), attempt=8, error="no", dead=True))
    assert sim.state.pending == 0

    sim.fold(DeadRetried(service="scenarios", target=failed, step=ARRANGE, inputs=(made,)))
    assert (sim.state.pending, sim.state.urgent) == (1, True)
    sim.arrange()

    assert len(sim.groups()) == 1


def test_heat_falls_by_half_a_week() -> None:
    week = 7 * DAY_S * 1_000_000

    whole, half = (heat(mentions=6, sessions=0, last_us=0, now_us=now_us) for now_us in (0, week))
    assert half == pytest.approx(whole / 2, abs=0.001)
    assert heat(mentions=6, sessions=0, last_us=week, now_us=0) == heat(mentions=6, sessions=0, last_us=0, now_us=0)


# what a person does


def slug(sim: Sim, word: str) -> str:
    return next(path for path, data in sorted(sim.files.items()) if word in data.decode())


def test_what_a_person_wrote_wins_and_survives_what_comes_later() -> None:
    sim = learned(*MIGRATION, *CATS)
    path, text = slug(sim, "Momo"), the(sim, "Momo")
    tuna = next(line for line in text.splitlines() if line.startswith("- Momo the cat eats tuna"))
    sofa = next(line for line in text.splitlines() if line.startswith("- Momo sleeps"))
    mark = tuna[-10:]
    sim.fold(
        ScenarioEdited(
            path=path,
            removed=(tuna, sofa, "# Momo the cat eats tuna", 'status: "open"'),
            added=(f"- Momo only eats *salmon* {mark}", "- she is three years old", "# Momo", 'status: "closed"'),
        )
    )
    sim.learn(Said("Momo the cat went to the vet", DAY_S + 120, "cats"))
    sim.arrange_all()
    text = the(sim, "Momo")

    assert "# Momo\n" in text
    assert 'status: "closed"' in text
    assert f"- Momo only eats \\*salmon\\* {mark}" in text
    assert "tuna" not in text.split("## Facts")[1]
    assert "sofa" not in text.split("## Facts")[1]
    assert "## Notes by hand\n\n- she is three years old" in text
    assert "went to the vet" in text
    assert path in sim.files, "the name of the file stays"


def test_a_note_that_is_taken_out_again_is_gone() -> None:
    sim = learned(*CATS)
    path = slug(sim, "Momo")
    sim.fold(ScenarioEdited(path=path, added=("- a note",)))
    sim.fold(ScenarioEdited(path=path, removed=("- a note",)))

    assert "a note" not in the(sim, "Momo")


@pytest.mark.parametrize("path", ["scenarios/none.md", "persona.md", "scenarios/../x.md", "scenarios/a/b.md", ""])
def test_an_edit_of_no_file_of_ours_changes_nothing(path: str) -> None:
    sim = learned(*CATS)
    before = dict(sim.files)
    sim.fold(ScenarioEdited(path=path, added=("- a note",)))

    assert sim.files == before


def test_a_correction_goes_where_what_it_corrects_is() -> None:
    sim = learned(*MIGRATION, *CATS)
    target = sim.rows("SELECT id FROM atoms WHERE text = ?", CATS[0].text)[0]
    event = sim.fold(MemoryCorrected(target=target, text="Momo eats salmon"))
    sim.standing[CATS[0].text] = "superseded"
    sim.arrange_all()

    assert frozenset([*(one.text for one in CATS), "Momo eats salmon"]) in sim.groups()
    assert f"[{atom_id(event, 0)[:8]}]" in the(sim, "salmon")


def test_what_is_forgotten_is_gone_from_rows_files_and_names_at_once() -> None:
    sim = learned(*CATS, *MIGRATION)
    sources = [f"turn {one.session} {one.time_s} {one.text}" for one in CATS[:1]]
    sim.fold(MemoryForgotten(ids=tuple(sources)))
    held = " ".join(map(str, sim.rows("SELECT * FROM atoms") + sim.rows("SELECT * FROM holds")))

    assert "tuna" not in " ".join(data.decode() for data in sim.files.values())
    assert "tuna" not in " ".join(sim.files)
    assert "tuna" not in held
    assert "tuna" not in str(sim.rows("SELECT * FROM scenarios")) + str(sim.rows("SELECT * FROM files"))

    sim.fold(MemoryForgotten(ids=tuple(f"turn {one.session} {one.time_s} {one.text}" for one in CATS)))
    sim.arrange_all()

    assert sim.groups() == {frozenset(one.text for one in MIGRATION)}
    assert "Momo" not in str(sim.rows("SELECT * FROM scenarios")) + "".join(sim.rows("SELECT slug FROM slugs"))


def test_a_forgotten_extraction_takes_its_atoms_and_a_forgotten_edit_its_words() -> None:
    sim = Sim()
    made = sim.learn(*CATS)
    sim.arrange_all()
    edit = sim.fold(ScenarioEdited(path=slug(sim, "Momo"), added=("- a secret note",)))
    sim.fold(MemoryForgotten(ids=(edit,)))
    assert "secret" not in the(sim, "Momo")

    sim.fold(MemoryForgotten(ids=(made,)))
    assert sim.files == {}


# the file


def test_words_of_anyone_are_neither_markup_nor_lines_of_the_file() -> None:
    hostile = "# x\n---\nid: 1 <script> [a](b) `c` \u202e\x00 **d** \ud800"
    sim = learned(Said(hostile.encode("utf-8", "replace").decode(), 0))
    (text,) = (data.decode() for data in sim.files.values())
    facts = text.split("## Facts")[1].splitlines()

    assert text.count("\n---\n") == 1
    assert facts[2].startswith("- \\# x --- id: 1 \\<script\\> \\[a\\](b) \\`c\\`")
    assert "\x00" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("snake_case stays", "snake_case stays"),
        ("_emphasis_", "\\_emphasis\\_"),
        ("1. a list", "1\\. a list"),
        ("- an item", "\\- an item"),
        ("가나 다라", "가나 다라"),
        ("", ""),
    ],
)
def test_one_line_of_markdown(text: str, shown: str) -> None:
    assert line(text) == shown


def test_a_task_that_is_not_done_is_an_open_question() -> None:
    sim = Sim()
    sim.fold(TurnRecorded(role="user", text="a"), id="t1", session="s")
    atom = Atom(type="work_task", text="add an index to orders", sources=(Span("t1", 0, 1),))
    sim.fold(
        AtomsExtracted(step="atoms.extract", n=1, inputs=(), windows=(), extractor="x", version="1", atoms=(atom,))
    )
    sim.arrange_all()
    (text,) = (data.decode() for data in sim.files.values())

    assert "## Open questions\n\n- [ ] add an index to orders [" in text


# many episodes

MONTH_S = 30 * DAY_S


def long_story(months: int, a_month: int = 10) -> list[Said]:
    """One project, day after day, that goes on for months."""
    days = [month * MONTH_S + day * 3 * DAY_S for month in range(months) for day in range(a_month)]
    return [Said(f"deploy pipeline step{n} fix{n}", at_s, f"s{n}", "alpha") for n, at_s in enumerate(days)]


def test_a_scenario_of_many_episodes_has_a_file_for_each_month_and_loses_nothing() -> None:
    said = long_story(5)
    sim = Sim()
    for one in said:
        sim.learn(one)
        sim.arrange_all()
    (row,) = sim.rows("SELECT slug, parts FROM scenarios WHERE status <> 'merged'")
    main = f"scenarios/{row[0]}.md"
    parts = sorted(set(sim.files) - {main})
    everything = "".join(data.decode() for data in sim.files.values())

    assert len(parts) >= 3
    assert all(path.startswith(f"scenarios/{row[0]}--20") for path in parts)
    assert all(f"fix{n} " in everything for n in range(len(said)))
    assert all(path in sim.files[main].decode() for path in parts)
    at_once = learned(*said)
    assert {path.split("--")[-1] for path in at_once.files} == {path.split("--")[-1] for path in sim.files} | set()


def test_what_changes_in_an_old_month_is_written_there_alone() -> None:
    said = long_story(5)
    sim = learned(*said)
    before = dict(sim.files)
    old = said[1]
    target = sim.rows("SELECT id FROM atoms WHERE text = ?", old.text)[0]
    sim.fold(MemoryCorrected(target=target, text="deploy pipeline goes by hand"))
    sim.standing[old.text] = "superseded"
    sim.arrange_all()
    changed = {path for path in sim.files if sim.files[path] != before.get(path)}

    assert len(changed) == 2, "its month, and the file of the whole"
    assert all("goes by hand" in sim.files[path].decode() for path in changed if "--" in path)

    path = next(path for path in changed if "--" in path)
    fact = next(line for line in sim.files[path].decode().splitlines() if "goes by hand" in line)
    sim.fold(ScenarioEdited(path=path, removed=(fact,), added=()))
    assert "goes by hand" not in sim.files[path].decode().split("## Facts")[1]

    sim.fold(MemoryForgotten(ids=tuple(f"turn {one.session} {one.time_s} {one.text}" for one in said)))
    assert sim.files.keys() <= {path, next(iter(changed - {path}))}
