"""Does a turn cost the same whatever there is already: turns in a space, sessions in a space, spaces in a home?

The same texts published one by one at growing sizes, with every service running: until accepted, until the journal
has them, and what processor time of the daemon went into a turn until all services were done with it. A picture
stands beside the figures (benchmarks/results/growth.svg).

usage: python -m benchmarks.growth [--most 10000] [--most-spaces 1000]
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable

from benchmarks.common import RESULTS, arguments, bus, daemon, keep, until_idle
from lamina import events, ids, times
from lamina.bus import Outgoing
from lamina.client import Memory
from lamina.home import Home

TEXT = "We keep the orders in PostgreSQL 16, and every migration goes through a review by two people first."
PROBE = 200
AXES: dict[str, Callable[[int], tuple[str, str]]] = {
    "turns": lambda n: ("bench", "s"),
    "sessions": lambda n: ("bench", f"s{n}"),
    "spaces": lambda n: (f"bench{n}", "s"),
}


def outgoing(space: str, session: str) -> Outgoing:
    data = events.TurnRecorded(role="user", text=TEXT)
    event = events.make(data, id=ids.uuid7(), space=space, time=times.aware(None), session=session)
    return Outgoing(ids.event_subject(ids.token(space), "turn.recorded"), events.encode(event))


async def folded(home: Home, spaces: Iterable[str], *layers: str) -> None:
    """Wait until these layers of the spaces (or, without any, all of them) have all there is."""
    for space in dict.fromkeys(spaces):
        async with Memory.open(space=space, home=home.path) as memory:
            await memory.settled(600, layers=layers or None)


async def along(place: Callable[[int], tuple[str, str]], most: int) -> AsyncIterator[tuple[str, dict[str, float]]]:
    async with daemon() as (home, pid):
        link = await bus(home)
        stored, mark = 0, 100
        while mark <= most:
            while stored < mark:
                batch = [outgoing(*place(stored + n)) for n in range(min(100, mark - stored))]
                await link.publish_batch(batch)
                stored += len(batch)
            await folded(home, (place(n)[0] for n in range(stored)))
            used = await until_idle(pid)
            start = time.perf_counter()
            for n in range(PROBE):
                one = outgoing(*place(stored + n))
                await link.publish(one.subject, one.data)
            accepted = time.perf_counter() - start
            stored += PROBE
            await folded(home, [place(stored - 1)[0]], "l0")
            searchable = time.perf_counter() - start
            await folded(home, (place(n)[0] for n in range(stored - PROBE, stored)))
            yield (
                str(mark),
                {
                    "accepted_ms_per_turn": round(1e3 * accepted / PROBE, 3),
                    "searchable_ms_per_turn": round(1e3 * searchable / PROBE, 3),
                    "daemon_cpu_ms_per_turn": round(1e3 * (await until_idle(pid) - used) / PROBE, 3),
                },
            )
            mark *= 10
        await link.close()


def picture(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    """A line an axis: milliseconds a turn until searchable, over what there is already (both logarithmic in x)."""
    from math import log10

    width, height, left, bottom = 640, 360, 60, 40
    most = max(one["searchable_ms_per_turn"] for marks in figures.values() for one in marks.values()) * 1.2
    last = max(log10(int(mark)) for marks in figures.values() for mark in marks)
    colours = ("#1f77b4", "#d62728", "#2ca02c")

    def x(mark: str) -> float:
        return left + (log10(int(mark)) - 2) / max(1.0, last - 2) * (width - left - 90)

    def y(value: float) -> float:
        return height - bottom - value / most * (height - bottom - 20)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="12" '
        'font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="14">milliseconds a turn until searchable, by what there is already</text>',
    ]
    for step in range(5):
        value = most * step / 4
        parts.append(f'<text x="8" y="{y(value) + 4:.0f}">{value:.1f}</text>')
        parts.append(f'<line x1="{left}" x2="{width - 80}" y1="{y(value):.0f}" y2="{y(value):.0f}" stroke="#ddd"/>')
    for mark in next(iter(figures.values())):
        parts.append(f'<text x="{x(mark) - 12:.0f}" y="{height - 16}">{int(mark):,}</text>')
    for colour, (axis, marks) in zip(colours, figures.items(), strict=False):
        line = " ".join(f"{x(mark):.0f},{y(one['searchable_ms_per_turn']):.0f}" for mark, one in marks.items())
        end = list(marks.items())[-1]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        height_at = y(end[1]["searchable_ms_per_turn"]) + 4
        parts.append(f'<text x="{x(end[0]) + 6:.0f}" y="{height_at:.0f}" fill="{colour}">{axis}</text>')
    return "\n".join([*parts, "</svg>", ""])


async def main() -> None:
    options = arguments(__doc__, most=10_000, most_spaces=1_000)
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for axis, place in AXES.items():
        marks = figures[axis] = {}
        async for mark, measured in along(place, options.most_spaces if axis == "spaces" else options.most):
            marks[mark] = measured
            (RESULTS / "growth.svg").write_text(picture(figures))
            keep("growth", {"ms_per_turn_at": figures}, done=False)
    keep("growth", {"ms_per_turn_at": figures})


if __name__ == "__main__":
    asyncio.run(main())
