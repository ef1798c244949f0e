"""`lamina scale`, live: workers come, go, die, are started again, and come back with the next daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina.client import SyncMemory
from lamina.home import Home

WAIT_S = 60.0
pytestmark = pytest.mark.timeout(180)


def command(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "lamina.cli", "--home", str(home), *arguments]


def lamina(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(home, *arguments), capture_output=True, text=True, check=False, timeout=WAIT_S)


@contextmanager
def up(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(command(home, "up"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: Home(home).runtime() is not None)
        yield child
    finally:
        child.terminate()
        child.wait(WAIT_S)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def service(home: Path, name: str) -> dict[str, Any]:
    status = json.loads(lamina(home, "status", "--json").stdout)
    (found,) = (one for one in status["services"] if one["name"] == name)
    return dict(found)


def scaled(home: Path, name: str, n: int) -> list[int]:
    result = lamina(home, "scale", name, str(n), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    return [worker["pid"] for worker in json.loads(result.stdout)["workers"]]


def test_scale_up_death_restart_and_down(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with up(home) as daemon, SyncMemory.open(space="alice", home=home) as memory:
        pids = scaled(home, "journal", 2)
        assert len(pids) == 2
        found = service(home, "journal")
        assert found["wanted"] == 2
        assert {worker["pid"]: (worker["state"], worker["lanes"]) for worker in found["workers"]} == {
            pids[0]: ("following", 128),
            pids[1]: ("following", 128),
            daemon.pid: ("standby", 0),
        }
        accepted = memory.turn("user", "the harbour opens at nine", session="s")
        assert memory.recall("harbour", min_seq=accepted.seq, deadline_s=20).status == "found"

        os.kill(pids[0], signal.SIGKILL)
        until(lambda: (found := service(home, "journal"))["ended"] and found["lanes"] == 256)
        assert service(home, "journal")["ended"][0]["why"] == "it was ended by SIGKILL"
        until(lambda: len([w for w in service(home, "journal")["workers"] if w["lanes"] == 128]) == 2)
        memory.turn("user", "the harbour closes at six", session="s")
        memory.settled(layers=["l0"])

    with up(home):  # what was asked for outlives the daemon
        until(lambda: len([w for w in service(home, "journal")["workers"] if w["lanes"] == 128]) == 2)
        assert scaled(home, "journal", 0) == []
        until(lambda: len(service(home, "journal")["workers"]) == 1)
        assert service(home, "journal")["lanes"] == 256


def test_a_crash_loop_is_said_and_the_daemon_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    Home(home).prepare()
    assert scaled(home, "journal", 1) == []
    with up(home):
        until(lambda: any(w["state"] == "following" and w["lanes"] for w in service(home, "journal")["workers"]))
        (home / "config.toml").write_text("not a configuration")  # from now on no worker starts
        (pid,) = (one.pid for one in _supervised(home) if one.pid)
        os.kill(pid, signal.SIGKILL)
        until(lambda: [one for one in _supervised(home) if one.state == "crash loop"])
        (loop,) = _supervised(home)
        assert "code 2" in loop.why or "code 1" in loop.why
        assert "config.toml" in loop.why


def _supervised(home: Path) -> list[Any]:
    from lamina.daemon import supervised

    return supervised(Home(home))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("vectors", "2"), "tokens_per_day"),
        (("journal", "-1"), "no number of workers"),
        (("journal", "64"), "at most"),
    ],
)
def test_what_cannot_be(tmp_path: Path, arguments: tuple[str, str], said: str) -> None:
    home = tmp_path / "home"
    Home(home).prepare()
    (home / "config.toml").write_text(
        '[embedding]\nprovider = "endpoint"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )
    environment = {name: value for name, value in os.environ.items() if name != "LAMINA_EMBEDDING_PROVIDER"}
    result = subprocess.run(
        command(home, "scale", *arguments), capture_output=True, text=True, check=False, env=environment
    )

    assert result.returncode == 1
    assert said in result.stderr
    assert not (home / "run" / "scale.json").exists()
