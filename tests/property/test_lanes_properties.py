"""Lane assignment for any members: one owner each, and nothing moves that need not."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lamina.ids import LANES
from lamina.runtime.lanes import SEATS, node_owners, owners, seat_key, share

NAMES = st.sets(st.text(max_size=12), min_size=1, max_size=12)


@given(NAMES)
def test_every_lane_has_exactly_one_owner(members: set[str]) -> None:
    shares = [share(member, members) for member in members]

    assert sum(map(len, shares)) == LANES
    assert frozenset[int]().union(*shares) == frozenset(range(LANES))


@given(NAMES, st.text(max_size=12))
def test_a_join_moves_lanes_to_the_newcomer_alone(members: set[str], newcomer: str) -> None:
    before, after = owners(members), owners(members | {newcomer})

    assert {after[lane] for lane in range(LANES) if before[lane] != after[lane]} <= {newcomer}


@given(NAMES, st.data())
def test_a_leave_moves_the_leavers_lanes_alone(members: set[str], data: st.DataObject) -> None:
    leaver = data.draw(st.sampled_from(sorted(members)))
    before, after = owners(members), owners(members - {leaver})

    if len(members) == 1:
        assert after == {}
    else:
        assert all(before[lane] == leaver for lane in range(LANES) if before[lane] != after[lane])
        assert leaver not in after.values()


@given(st.dictionaries(st.text(max_size=8), st.sets(st.text(max_size=8), max_size=4), max_size=6))
def test_nodes_and_their_workers_share_the_lanes(nodes: dict[str, set[str]]) -> None:
    found = node_owners(nodes)

    assert set(found) == (set(range(LANES)) if any(nodes.values()) else set())
    assert all(worker in nodes[node] for node, worker in found.values())


@given(
    st.dictionaries(
        st.text(max_size=8), st.sets(st.text(max_size=8), min_size=1, max_size=4), min_size=2, max_size=6
    ),
    st.data(),
)
def test_a_worker_that_leaves_moves_nothing_between_nodes(nodes: dict[str, set[str]], data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(sorted(nodes)))
    leaver = data.draw(st.sampled_from(sorted(nodes[node])))
    before, after = node_owners(nodes), node_owners({**nodes, node: nodes[node] - {leaver}})

    moved = [lane for lane in range(LANES) if before[lane] != after[lane]]
    assert all(before[lane] == (node, leaver) for lane in moved)


def test_members_in_their_seats_share_evenly_for_any_number_of_them() -> None:
    for n in range(1, SEATS + 1):
        counts = Counter(owners(seat_key(seat) for seat in range(n)).values())
        assert len(counts) == n
        assert max(counts.values()) <= 1.25 * LANES / n
    two = Counter(owners([seat_key(0), seat_key(1)]).values())
    assert set(two.values()) == {LANES // 2}
