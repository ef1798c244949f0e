"""`--as-of` as a person types it."""

from __future__ import annotations

from typing import Any

from lamina.client import Memory
from lamina.home import Home
from tests.acceptance.test_replay_commands import lamina
from tests.support.whole import daemon


async def test_recall_show_and_why_as_of_an_event_and_a_day(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.remember("I live in Lisbon", time="2024-03-01T12:00:00+00:00")
        await memory.settled(20)
        (old,) = await lamina(home, "--space", "alice", "show", "atoms")
        corrected = await memory.correct(old["id"], "I live in Porto", time="2025-03-01T12:00:00+00:00")
        await memory.settled(20)

        assert await statuses(home) == {"I live in Lisbon": "superseded", "I live in Porto": "active"}
        assert corrected.seq is not None
        for then in (str(corrected.seq - 1), "2024-12-31"):
            assert await statuses(home, "--as-of", then) == {"I live in Lisbon": "active"}
            (hits,) = await lamina(home, "--space", "alice", "recall", "live", "--as-of", then)
            assert [item["text"] for item in hits["items"]] == ["I live in Lisbon"]
            assert hits["as_of_seq"] < corrected.seq
            (links,) = await lamina(home, "--space", "alice", "why", old["id"], "--as-of", then)
            assert [link["note"] for link in links] == ["", ""]
            turns = await lamina(home, "--space", "alice", "show", "log", "--as-of", then)
            assert [turn["text"] for turn in turns] == ["I live in Lisbon"]
        await lamina(home, "--space", "alice", "recall", "live", "--as-of", "99999", code=1)
        await lamina(home, "--space", "alice", "show", "spaces", "--as-of", "1", code=1)


async def statuses(home: Home, *more: str) -> dict[str, Any]:
    found = await lamina(home, "--space", "alice", "show", "atoms", "--history", *more)
    return {one["text"]: one["status"] for one in found}
