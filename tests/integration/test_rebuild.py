"""A view is made again beside the live one: same rows, same files, readers never disturbed, interruptible."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any

import pytest

from lamina.bus import Message
from lamina.errors import Invalid
from lamina.rebuild.home import chosen_spaces, chosen_views
from lamina.rebuild.progress import Progress, Rebuilt
from lamina.rebuild.view import rebuild_view
from lamina.runtime.open_view import OpenView
from lamina.store import ViewReader
from lamina.store.view import generation
from tests.support.bench import Bench
from tests.support.toy import applied, dump, ledger, running, say, toy, until, view_file

TEXTS = ("tea and cake", "cake", "poison", "forget tea", "unfit", "茶と菓子")


def nothing(_: Progress) -> None:
    """Nobody looks at the progress."""


async def rebuilt(bench: Bench, **more: Any) -> Rebuilt:
    return await rebuild_view(toy(**more), bench.bus, bench.home, "alice", nothing)


async def spoken(bench: Bench, count: int = 60) -> None:
    for n in range(count):
        await say(bench.bus, f"{TEXTS[n % len(TEXTS)]}", id=f"e{n}")


async def test_a_rebuilt_view_is_the_one_that_was(bench: Bench) -> None:
    await spoken(bench)
    await bench.folded()
    wanted, lines, first = dump(bench.home), ledger(bench.home), generation(view_file(bench.home))

    done = await rebuilt(bench)

    assert (done.events, done.seq, done.dead) == (60, 60, 20)
    assert generation(view_file(bench.home)) == done.generation > first
    assert dump(bench.home) == wanted
    assert ledger(bench.home) == lines
    assert [path.name for path in view_file(bench.home).parent.glob(".toy.*")] == [".toy.lock"]


@pytest.mark.parametrize("loss", ["view", "views", "files"])
async def test_what_was_deleted_comes_back(bench: Bench, loss: str) -> None:
    await spoken(bench)
    await bench.folded()
    wanted = dump(bench.home)
    views = view_file(bench.home).parent
    if loss == "view":
        view_file(bench.home).unlink()
    elif loss == "views":
        shutil.rmtree(views)
    else:
        (views.parent / "last.txt").unlink()

    await rebuilt(bench)

    assert dump(bench.home) == wanted


async def test_readers_and_the_worker_go_on_while_a_view_is_rebuilt(bench: Bench) -> None:
    """New events arrive all the while; a reader never sees the position go back."""
    await spoken(bench)
    seen: list[int] = []
    stop = asyncio.Event()
    reader = ViewReader(view_file(bench.home))

    async def look() -> None:
        while not stop.is_set():
            seen.append(await reader.read(lambda db: len(db.execute("SELECT seq FROM said").fetchall())))
            await asyncio.sleep(0)

    async def arrive() -> None:
        n = 0
        while not stop.is_set():
            await say(bench.bus, f"late {n}", id=f"late{n}")
            n += 1
            await asyncio.sleep(0.002)

    async with running(bench.worker()):
        await until(lambda: applied(bench.home) == 60)
        async with asyncio.TaskGroup() as group:
            group.create_task(look())
            group.create_task(arrive())
            for _ in range(3):
                await rebuilt(bench)
            stop.set()
        await reader.close()
        last = await bench.bus.last("lamina.ev.>")
        assert last is not None
        await until(lambda: applied(bench.home) == last.seq)
    assert seen == sorted(seen)
    wanted = dump(bench.home)
    await rebuilt(bench)
    assert dump(bench.home) == wanted


async def test_an_interrupted_rebuild_goes_on_where_it_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await spoken(bench)
    await bench.folded()
    wanted = dump(bench.home)
    (view_file(bench.home).parent.parent / "last.txt").write_bytes(b"spoilt")
    fold = OpenView.fold
    folded: list[Any] = []

    async def stopped(view: OpenView[Any], messages: list[Message]) -> Any:
        if len(folded) == 2:
            raise asyncio.CancelledError
        folded.append(await fold(view, messages))
        return folded[-1]

    monkeypatch.setattr("lamina.rebuild.view.BATCH", 20)
    monkeypatch.setattr(OpenView, "fold", stopped)
    with pytest.raises(asyncio.CancelledError):
        await rebuilt(bench)
    assert generation(view_file(bench.home)) == 1
    monkeypatch.setattr(OpenView, "fold", fold)

    done = await rebuilt(bench)

    assert (done.events, done.resumed) == (60, 40)
    assert dump(bench.home) == wanted


async def test_what_another_version_left_is_not_gone_on_with(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await spoken(bench)
    await bench.folded()

    async def stopped(view: OpenView[Any], messages: list[Message]) -> Any:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(OpenView, "fold", stopped)
        with pytest.raises(asyncio.CancelledError):
            await rebuilt(bench, version=2)

    assert (await rebuilt(bench)).resumed == 0
    assert len([one for one in view_file(bench.home).parent.glob("*.db") if not one.is_symlink()]) == 1


async def test_a_rebuild_decides_nothing(bench: Bench) -> None:
    """It folds the decisions that are in the log; the model is never asked, though more is due."""

    async def refused(*_: object) -> Any:
        raise AssertionError("a rebuild asked the model")

    await spoken(bench, 8)
    async with running(bench.decider()):
        await until(lambda: bench.digests())
    published = bench.log.last_seq
    await rebuilt(bench, act=refused)

    assert bench.digests()
    assert bench.log.last_seq == published


def test_only_what_is_there_can_be_rebuilt(bench: Bench) -> None:
    with pytest.raises(Invalid, match="no space 'bob'"):
        chosen_spaces(bench.home, ["bob"])
    with pytest.raises(Invalid, match="there are ledger, journal"):
        chosen_views(["jornal"])
    assert chosen_views([])[0] == "journal"
    assert chosen_spaces(bench.home, []) == []
