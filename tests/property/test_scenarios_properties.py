"""Scenarios are a function of the atoms: order of arrival and batches have no part in what belongs together."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.scenarios import Said, Sim

DAY_S = 86_400
WORDS = ("postgres", "migration", "dump", "index", "cat", "tuna", "sofa", "데이터베이스", "迁移", "報告")
_times = st.one_of(st.integers(0, 3_000), st.integers(0, 40).map(lambda n: n * 3_600), st.just(20 * DAY_S))
_said = st.lists(
    st.builds(
        Said,
        text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
        time_s=_times,
        session=st.sampled_from(["a", "b", "c"]),
        project=st.sampled_from(["", "", "p", "q"]),
        status=st.sampled_from(["active", "active", "superseded", "undone"]),
    ),
    min_size=1,
    max_size=24,
).map(
    lambda found: [
        Said(f"{one.text} n{at}", one.time_s, one.session, one.project, one.status) for at, one in enumerate(found)
    ]
)


def learned(said: Sequence[Said], batches: Sequence[int]) -> Sim:
    """A space that learned these in batches of these sizes (over and over), arranged after each."""
    sim, at, turn = Sim(), 0, 0
    while at < len(said):
        size = batches[turn % len(batches)]
        sim.learn(*said[at : at + size])
        sim.arrange_all()
        at, turn = at + size, turn + 1
    return sim


@settings(max_examples=80)
@given(said=_said, data=st.data(), batches=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_any_order_and_any_batches_give_the_same(said: list[Said], data: st.DataObject, batches: list[int]) -> None:
    at_once = learned(said, [len(said)])
    other = learned(data.draw(st.permutations(said)), batches)

    assert other.episodes() == at_once.episodes()
    assert other.groups() == at_once.groups()
    assert other.titles() == at_once.titles()


@settings(max_examples=40)
@given(said=_said, batches=st.lists(st.integers(1, 9), min_size=1, max_size=3), out=st.sets(st.integers(0, 23)))
def test_what_is_taken_out_is_as_if_it_had_never_been(said: list[Said], batches: list[int], out: set[int]) -> None:
    gone = {at for at in out if at < len(said)}
    left = [one for at, one in enumerate(said) if at not in gone]
    sim = learned(said, batches)
    for at in gone:
        sim.standing[said[at].text] = "undone"
    sim.learn(Said("something else altogether", 90 * DAY_S, "z"))
    sim.arrange_all()
    expected = learned([*left, Said("something else altogether", 90 * DAY_S, "z")], [len(said) + 1])

    assert sim.episodes() == expected.episodes()
    assert sim.groups() == expected.groups()


@settings(max_examples=40)
@given(said=_said, batches=st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_rows_and_files_agree(said: list[Said], batches: list[int]) -> None:
    sim = learned(said, batches)

    assert not sim.rows("SELECT 1 FROM episodes e LEFT JOIN scenarios s ON s.id = e.scenario WHERE s.id IS NULL")
    assert not sim.rows(
        "SELECT 1 FROM episodes e LEFT JOIN episodes p ON p.id = e.parent WHERE e.parent <> '' AND p.id IS NULL"
    )
    assert not sim.rows("SELECT 1 FROM episodes e JOIN episodes p ON p.id = e.parent WHERE p.scenario <> e.scenario")
    roots = sim.rows("SELECT scenario FROM episodes WHERE parent = ''")
    assert sorted(roots) == sorted(sim.rows("SELECT id FROM scenarios WHERE status <> 'merged'")), "one root each"
    slugs = sim.rows("SELECT slug FROM scenarios WHERE status <> 'merged'")
    assert sorted(sim.files) == sorted(f"scenarios/{slug}.md" for slug in slugs)
