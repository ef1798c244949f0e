"""Who follows which lanes: rendezvous hashing. A join moves lanes to the newcomer alone, a leave the leaver's alone.

Pure: everybody who knows the same members comes to the same answer, without asking anyone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from lamina.ids import LANES

SEATS = 64
"""Workers of one service inside a node, at most."""


@lru_cache(maxsize=1024)
def weights(key: str) -> tuple[int, ...]:
    """The weight of a member for each lane; the highest one of a lane's members owns it."""
    raw = hashlib.shake_256(key.encode()).digest(8 * LANES)
    return tuple(int.from_bytes(raw[8 * n : 8 * n + 8], "big") for n in range(LANES))


def owners(keys: Iterable[str], lanes: Iterable[int] = range(LANES)) -> dict[int, str]:
    """Lane -> the member that owns it; empty where there are no members."""
    members = sorted(set(keys))
    if not members:
        return {}
    return {lane: max(members, key=lambda key: (weights(key)[lane], key)) for lane in lanes}


def share(key: str, keys: Iterable[str], lanes: Iterable[int] = range(LANES)) -> frozenset[int]:
    """The lanes that member `key` owns among `keys`."""
    return frozenset(lane for lane, owner in owners(keys, lanes).items() if owner == key)


def node_owners(nodes: Mapping[str, Iterable[str]]) -> dict[int, tuple[str, str]]:
    """Two levels: lane -> (node, member of that node). A node without members owns nothing."""
    staffed = {node: tuple(members) for node, members in nodes.items() if members}
    by_node: dict[str, list[int]] = {}
    for lane, node in owners(staffed).items():
        by_node.setdefault(node, []).append(lane)
    return {
        lane: (node, owner) for node, lanes in by_node.items() for lane, owner in owners(staffed[node], lanes).items()
    }


def seat_key(seat: int) -> str:
    """The member's key of a seat. Seats are taken from 0 on, and their keys are chosen so that the first n of them,
    for any n, share the lanes as evenly as was found (`benchmarks/lanes.py --choose`); a worker that comes back to
    its seat gets the same lanes as before.
    """
    return f"{seat}.{SALTS[seat]}"


# fmt: off
SALTS = (
    0, 7, 1, 35, 199, 771, 1189, 586, 383, 1058, 150, 493, 1988, 601, 88, 213, 393, 33, 1735, 1740, 835, 1498,
    473, 388, 1545, 810, 177, 1096, 1652, 12, 408, 324, 273, 755, 105, 1468, 324, 185, 60, 20, 0, 27, 575,
    1431, 29, 21, 18, 366, 57, 1301, 216, 569, 458, 3, 12, 94, 15, 46, 64, 56, 90, 628, 432, 454,
)
# fmt: on
