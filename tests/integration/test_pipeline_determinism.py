"""The pipeline up to scenarios, with the built-in extractor: one log gives one set of views, and so does a replay."""

from __future__ import annotations

from pathlib import Path

from lamina.home import Home
from tests.support.scenarios import ScenariosBench, derived, diary


async def test_the_same_log_gives_the_same_views_twice_and_by_replay(tmp_path: Path) -> None:
    turns = diary(300)
    benches = []
    for name in ("one", "two"):
        home = Home(tmp_path / name)
        home.prepare()
        bench = ScenariosBench(home)
        await bench.through(turns)
        benches.append(bench)
    one, two = benches
    again = Home(tmp_path / "again")
    again.prepare()
    await one.replayed(again)

    assert len(one.files()) > 5
    assert derived(two.home) == derived(one.home)
    assert derived(again) == derived(one.home)
