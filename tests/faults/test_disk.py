"""Disks that fill and logs that are away for long: typed errors, nothing half-written, everything after it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.bus.local import local_bus
from lamina.bus.nats import NatsBus
from lamina.client import Memory
from lamina.errors import DiskFull, Full, LaminaError
from lamina.home import Home
from lamina.store.files import AppendFile, write_atomic
from tests.support.bench import Bench
from tests.support.toy import applied, ledger, running, say, until
from tests.support.whole import daemon, outbox_files, sources, texts

SMALL_BYTES = 24 * 1024 * 1024


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB; only root can mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a small file system can be mounted by root alone")
    made = subprocess.run([mount, "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip(f"no small file system can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path, *, leave: int = 0) -> Path:
    """A file that takes what room there is, but for `leave` bytes."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(64 * 1024))
        except OSError:
            pass
        try:
            while True:
                file.write(bytes(512))
        except OSError:
            pass
        file.truncate(max(0, file.tell() - leave))
    return ballast


def test_an_append_without_room_leaves_the_file_as_it_was(small: Path) -> None:
    file = AppendFile(small / "a.jsonl")
    file.mend()
    file.append(b"first\n")
    ballast = fill(small)
    with pytest.raises(DiskFull):
        file.append(b"x" * 1_000_000 + b"\n")
    assert (small / "a.jsonl").read_bytes() == b"first\n"
    ballast.unlink()
    file.append(b"second\n")

    assert (small / "a.jsonl").read_bytes() == b"first\nsecond\n"
    file.close()


def test_a_replacement_without_room_leaves_the_old_and_no_litter(small: Path) -> None:
    write_atomic(small / "a.txt", b"old")
    fill(small)
    with pytest.raises(DiskFull):
        write_atomic(small / "a.txt", b"x" * 1_000_000)

    assert (small / "a.txt").read_bytes() == b"old"
    assert sorted(path.name for path in small.iterdir()) == ["a.txt", "ballast"]


async def test_a_view_without_room_waits_and_goes_on(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.runtime.follower.RETRY_S", 0.05)
    home = Home(small / "home")
    home.prepare()
    bench = Bench(home)
    await say(bench.bus, "before", id="e0")
    worker = bench.worker()
    async with running(worker):
        await until(lambda: applied(home) == 1)
        ballast = fill(small)
        for n in range(20):
            await say(bench.bus, "x" * 100_000 + f"{n}", id=f"e{n + 1}")
        await until(lambda: worker.follower.errors > 1)
        assert worker.follower.position < 21
        ballast.unlink()
        await until(lambda: applied(home) == 21)

    assert ledger(home).count(b"\n") == 21
    assert "DiskFull" in worker.follower.last_error


async def test_a_whole_home_without_room_refuses_and_recovers(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was accepted before, while and after the disk was full is in the ledger once."""
    monkeypatch.setitem(NatsBus.publish.__kwdefaults__ or {}, "timeout_s", 0.5)
    monkeypatch.setattr("lamina.daemon.host.MEND_S", 0.2)
    monkeypatch.setattr("lamina.daemon.host.LOOK_S", 0.1)
    home = Home(small / "home")
    home.prepare()
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        accepted = [(await memory.turn("user", f"before {n}", session="s")).id for n in range(5)]
        await memory.settled(20)
        ballast = fill(small, leave=200_000)
        errors: list[LaminaError] = []
        for n in range(60):
            try:
                accepted.append((await memory.turn("user", f"while {n} " + "x" * 20_000, session="s")).id)
            except LaminaError as error:
                errors.append(error)
                break
        assert errors, "there was always room"
        assert isinstance(errors[0], Full)
        ballast.unlink()

        async def room() -> bool:
            try:
                accepted.append((await memory.turn("user", "after", session="s")).id)
            except Full:
                return False
            return True

        await until(room)
        await memory._link.emptied()
        await memory.settled(30)

    assert [line["event"]["id"] for line in sources(home, "alice")] == accepted


async def test_the_bus_is_away_for_an_hour(home: Home) -> None:
    """What an agent says in an hour: 2,000 turns and some large results, all in the outbox, all published then."""
    async with local_bus(home.path) as (server, _):
        home.config.write_text(f'[bus]\ncredentials = "{server.credentials_file}"\n')
        url = server.url
        async with Memory.open(space="alice", home=home.path, url=url) as memory:
            await memory.turn("user", "before", session="s")
            await server.stop()
            await until(lambda: not memory._link.connected)
            for n in range(2_000):
                assert (await memory.turn("user", f"turn {n}", session=f"s{n % 3}")).seq is None
            for n in range(3):
                await memory.tool_result("run", {}, f"result {n} " * 40_000, session="s", call_id=f"c{n}")
            await server.start()
            await memory._link.emptied()
    async with daemon(home), Memory.open(space="alice", home=home.path) as memory:
        await memory.settled(60)

    assert outbox_files(home) == []
    assert texts(home, "alice")[:2_001] == ["before", *(f"turn {n}" for n in range(2_000))]
    assert len(sources(home, "alice")) == 2_004
