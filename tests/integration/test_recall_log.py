"""What memory is asked is recorded where a home wants that, compared in second thoughts, and forgotten on request."""

from __future__ import annotations

from lamina.client import Memory
from lamina.home import Home
from lamina.rebuild.home import connected
from lamina.rederive.diff import difference, recorded
from lamina.rederive.run import rederive
from tests.support.atoms import plain_service
from tests.support.toy import until
from tests.support.whole import daemon

SPACE = "alice"


async def queries(home: Home) -> list[str]:
    async with connected(home) as bus:
        return [one.query for one in await recorded(bus, home.spaces / SPACE)]


async def test_nothing_is_recorded_unasked(home: Home) -> None:
    async with daemon(home), Memory.open(space=SPACE, home=home.path) as memory:
        accepted = await memory.turn("user", "green tea", session="s")
        await memory.settled(20)
        await memory.recall("tea")
        last = await memory.turn("user", "black tea", session="s")
        assert await queries(home) == []
    assert accepted.id != last.id


async def test_questions_are_compared_and_can_be_forgotten(home: Home) -> None:
    home.config.write_text("[recall]\nrecord = true\n")
    async with daemon(home), Memory.open(space=SPACE, home=home.path) as memory:
        await memory.turn("user", "My cat is called Tapioca.\nit rains", session="s")
        await memory.end_session("s")
        await memory.settled(20)
        for query in ("what is the cat called?", "어디 살아?", "what is the cat called?", " "):
            await memory.recall(query, layers=["l1"], session="asking")

        async def both() -> bool:
            return await queries(home) == ["어디 살아?", "what is the cat called?"]

        await until(both)
        before = len((await memory.recall("rains", layers=["l0"], limit=50)).items)
        assert before == 1  # a question is no memory

        async with connected(home) as bus:
            await rederive(home, bus, SPACE, "second", {}, service=plain_service())
            found = await difference(home, bus, SPACE, "second")
        assert found.asked >= 2
        assert "what is the cat called?" in {one.query for one in found.queries}

        receipt = await memory.forget(match="the cat called?")
        assert receipt.found == ()
        assert receipt.said["recall.asked"] == 2
        assert "what is the cat called?" not in await queries(home)
