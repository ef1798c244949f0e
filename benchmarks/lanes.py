"""How evenly are lanes shared, how many move when a worker or a node joins or leaves, how long until they are taken?

A simulation of the very functions that workers call: up to 64 workers of a service in a node, up to 256 nodes, and
both levels at once. `--choose 4096` finds the keys of the seats anew, out of so many candidates each.

    python -m benchmarks.lanes
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common import arguments, keep
from lamina.ids import LANES
from lamina.runtime import membership
from lamina.runtime.lanes import SEATS, node_owners, owners, seat_key, weights

WORKERS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
NODES = (1, 2, 3, 5, 8, 16, 32, 64, 128, 256)
ROUNDS = 20


def balance(counts: Counter[Any], members: int) -> float:
    """The lanes of the busiest member, in the mean of all."""
    return max(counts.values()) / (LANES / members)


def moved(before: Sequence[str], after: Sequence[str]) -> dict[str, int]:
    """How many lanes change hands, and how many of those for no need: neither from a leaver nor to a newcomer."""
    was, now = owners(before), owners(after)
    gone, come = set(before) - set(after), set(after) - set(before)
    changes = [(was[lane], now[lane]) for lane in range(LANES) if was[lane] != now[lane]]
    return {"moved": len(changes), "needless": sum(a not in gone and b not in come for a, b in changes)}


def level(sizes: Sequence[int], names: Any) -> list[dict[str, Any]]:
    """One level, with members called by `names(n, round)`."""
    rows = []
    for n in sizes:
        balances, joins, leaves, needless = [], [], [], 0
        for at in range(ROUNDS):
            keys = names(n + 1, at)
            balances.append(balance(Counter(owners(keys[:n]).values()), n))
            join, out = moved(keys[:n], keys), random.Random(at).randrange(n)
            leave = moved(keys[:n], keys[:out] + keys[out + 1 : n]) if n > 1 else {"moved": LANES, "needless": 0}
            joins.append(join["moved"])
            leaves.append(leave["moved"])
            needless += join["needless"] + leave["needless"]
        rows.append(
            {
                "members": n,
                "max_over_mean": round(statistics.mean(balances), 3),
                "worst": round(max(balances), 3),
                "join_moves": round(statistics.mean(joins), 1),
                "leave_moves": round(statistics.mean(leaves), 1),
                "ideal_moves": round(LANES / (n + 1), 1),
                "needless_moves": needless,
            }
        )
    return rows


def seats(n: int, _: int) -> list[str]:
    return [seat_key(seat) for seat in range(min(n, SEATS))] + [f"over{i}" for i in range(n - SEATS)]


def strangers(n: int, at: int) -> list[str]:
    rng = random.Random(f"{n} {at}")
    return [f"node-{rng.getrandbits(64):x}" for _ in range(n)]


def both(nodes: int, workers: int) -> dict[str, Any]:
    """Nodes with so many workers each: the busiest worker, and how long it takes to find every owner."""
    found, seconds = [], []
    for at in range(5):
        cast = {node: [seat_key(seat) for seat in range(workers)] for node in strangers(nodes, at)}
        started = time.perf_counter()
        shared = node_owners(cast)
        seconds.append(time.perf_counter() - started)
        found.append(balance(Counter(shared.values()), min(LANES, nodes * workers)))
    return {
        "nodes": nodes,
        "workers_each": workers,
        "max_over_mean": round(statistics.mean(found), 3),
        "assignment_ms": round(1e3 * statistics.median(seconds), 2),
    }


def takeover() -> dict[str, Any]:
    """Seconds from a fault until the others follow the lanes, by the rules of membership: a worker looks once every
    beat, at a random moment; the dead are told by the kernel's lock, the frozen by a beat that stands still."""
    rng = random.Random(7)
    beat, lease = membership.HEARTBEAT_S, membership.LEASE_S
    found: dict[str, Any] = {}
    for others in (1, 7, 63):
        died, froze = [], []
        for _ in range(2_000):
            looks = [rng.uniform(0, beat) for _ in range(others)]
            died.append(max(looks))
            silent = rng.uniform(0, beat)  # so long ago was its last beat when it froze
            seen = [look - beat if look > 0 else look for look in looks]
            froze.append(max(_frozen_at(at, silent, beat, lease) for at in seen))
        found[f"{others + 1} workers"] = {
            "death_p50_s": round(statistics.median(died), 2),
            "death_max_s": round(max(died), 2),
            "freeze_p50_s": round(statistics.median(froze), 2),
            "freeze_max_s": round(max(froze), 2),
        }
    return found


def _frozen_at(first: float, silent: float, beat: float, lease: float) -> float:
    """When one that looks at `first`, `first + beat` ... finds that the beat of `silent` s ago stood for a lease."""
    look = first
    while look < -silent:
        look += beat
    noticed = look
    while look - noticed < lease:
        look += beat
    return look


def choose(candidates: int) -> tuple[int, ...]:
    """Greedily, for every seat the salt that leaves the first n seats most even, and evener yet in the square."""
    best = np.zeros(LANES, dtype=np.uint64)
    owner = np.full(LANES, -1)
    salts = []
    for seat in range(SEATS):
        scored = []
        for salt in range(candidates if seat else 1):
            mine = np.array(weights(f"{seat}.{salt}"), dtype=np.uint64) > best
            counts = np.bincount(np.where(mine, seat, owner), minlength=seat + 1)
            scored.append((int(counts.max()), int((counts**2).sum()), salt))
        salts.append(min(scored)[2])
        new = np.array(weights(f"{seat}.{salts[-1]}"), dtype=np.uint64)
        owner = np.where(new > best, seat, owner)
        best = np.maximum(best, new)
    return tuple(salts)


def main() -> None:
    options = arguments(__doc__, choose=0)
    if options.choose:
        print(choose(options.choose))
        return
    keep(
        "lanes",
        {
            "lanes": LANES,
            "workers_in_their_seats": level(WORKERS, seats),
            "workers_of_any_name": level(WORKERS, strangers),
            "nodes": level(NODES, strangers),
            "nodes_and_workers": [both(*one) for one in ((1, 64), (3, 4), (16, 4), (16, 16), (64, 4), (256, 64))],
            "takeover_simulated": takeover(),
        },
    )


if __name__ == "__main__":
    main()
