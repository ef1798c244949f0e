"""Verbs that start, stop, wait and are stopped: the daemon, workers, Ctrl-C, pipes and terminals."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina.cli.parser import load, verbs
from lamina.client import SyncMemory

LAMINA = Path(sysconfig.get_path("scripts")) / "lamina"
WAIT_S = 30.0
SPACE = "terminal"
STEERING = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\u202e"
OUTPUTS = {words: kind for point in verbs() for words, kind in load(point).outputs.items()}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def command(home: Path, *arguments: str) -> list[str]:
    return [str(LAMINA), "--home", str(home), *arguments]


def lamina(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(home, *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_S,
        stdin=subprocess.DEVNULL,
    )


def answer(home: Path, *arguments: str) -> Any:
    """The one JSON document of a verb."""
    result = lamina(home, *arguments, "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    return msgspec.json.decode(result.stdout, type=OUTPUTS[arguments[0]])


class Process:
    """A `lamina` that goes on until it is stopped."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.child = subprocess.Popen(
            command(home, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def first_line(self) -> str:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line:
            assert self.child.stderr is not None
            pytest.fail(f"it ended at once: {self.child.stderr.read()}")
        return line

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; its exit code, and what it said on stderr."""
        try:
            self.child.send_signal(number)
            _, said = self.child.communicate(timeout=WAIT_S)
        finally:
            self.child.kill()
        return self.child.returncode, said


def until(condition: Callable[[], bool], what: str) -> None:
    """Return once `condition` holds."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {WAIT_S} s"
        select.select([], [], [], 0.02)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a running daemon and a memory that would like to steer the terminal."""
    path = tmp_path_factory.mktemp("processes") / "home"
    daemon = Process(path, "up", "--json")
    try:
        daemon.first_line()
        with SyncMemory.open(space=SPACE, home=path) as memory:
            memory.turn("user", f"steering {STEERING} text", session=f"s {STEERING}", name=f"N{STEERING}")
            memory.turn("assistant", "다음 줄은 아주 길어서 여러 줄로 나뉘어야 합니다. " * 8, session="long")
            memory.tool_result("list", {}, "\n".join(f"line {n}" for n in range(500)), session="long")
            memory.settled(layers=["l0"])
        yield path
    finally:
        daemon.end()


# -- up, down, status, worker


def test_life_of_a_daemon(tmp_path: Path) -> None:
    """Nothing runs; up; a second up is refused, naming the first; a worker joins and leaves; down; nothing runs."""
    home = tmp_path / "home"
    assert answer(home, "status").bus.state == "down"
    assert answer(home, "down").stopped is False

    daemon = Process(home, "up", "--json")
    started = msgspec.json.decode(daemon.first_line(), type=OUTPUTS["up"])
    second = lamina(home, "up")
    assert second.returncode == 1
    assert f"process {started.pid}" in second.stderr

    status = answer(home, "status")
    assert (status.bus.state, status.bus.pid) == ("up", started.pid)
    assert {service.name for service in status.services} >= {"journal", "query"}

    worker = Process(home, "worker", "journal", "--json")
    joined = msgspec.json.decode(worker.first_line(), type=OUTPUTS["worker"])
    until(lambda: joined.pid in pids(home, "journal"), "a sign of life of the second worker")
    assert pids(home, "journal") == {started.pid, joined.pid}
    assert worker.end(signal.SIGINT)[0] == 0
    assert pids(home, "journal") == {started.pid}

    assert answer(home, "down").pid == started.pid
    assert daemon.child.wait(WAIT_S) == 0
    daemon.end()
    assert answer(home, "status").bus.state == "down"


def test_what_a_home_holds_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Whatever the umask of the shell is: views, ledger, store of the bus, and what is written beside them."""
    home = tmp_path / "home"
    before = os.umask(0o000)
    daemon = Process(home, "up", "--json")
    try:
        daemon.first_line()
        assert lamina(home, "remember", "Always answer in French.").returncode == 0
        assert lamina(home, "export", str(tmp_path / "out.tar")).returncode == 0
        open_to_others = [
            str(path.relative_to(tmp_path))
            for path in (home, *home.rglob("*"), tmp_path / "out.tar")
            if not path.is_symlink() and path.lstat().st_mode & 0o077 and not path.is_socket()
        ]
    finally:
        os.umask(before)
        daemon.end()

    assert len(list(home.rglob("*.db"))) >= 5
    assert open_to_others == []


def pids(home: Path, service: str) -> set[int]:
    (found,) = (one for one in answer(home, "status").services if one.name == service)
    return {worker.pid for worker in found.workers}


def test_ctrl_c_ends_up_cleanly(tmp_path: Path) -> None:
    daemon = Process(tmp_path / "home", "up", "--json")
    daemon.first_line()
    code, said = daemon.end(signal.SIGINT)

    assert code == 0
    assert "Traceback" not in said
    assert lamina(tmp_path / "home", "status").stdout.startswith("● nothing runs")


def test_worker_without_a_daemon_says_what_to_do(tmp_path: Path) -> None:
    result = lamina(tmp_path / "home", "worker", "journal")

    assert result.returncode == 1
    assert "lamina up" in result.stderr


def test_runtime_file_of_a_killed_daemon_is_seen_through(tmp_path: Path) -> None:
    """Its process number may belong to somebody else by now, who must not be stopped for it."""
    home = tmp_path / "home"
    (home / "run").mkdir(parents=True, mode=0o700)
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        runtime = {"pid": stranger.pid, "started_us": 1, "url": "nats://127.0.0.1:1"}
        (home / "run" / "daemon.json").write_bytes(msgspec.json.encode(runtime))

        assert answer(home, "down").stopped is False
        assert answer(home, "status").bus.state == "down"
        (found,) = (one for one in answer(home, "doctor").findings if one.check == "runtime file")
        assert found.state == "warning"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


# -- being interrupted, being cut off


def test_ctrl_c_on_a_waiting_verb(home: Path) -> None:
    """A recall whose daemon is frozen waits for its deadline; Ctrl-C ends it at once, with code 130."""
    daemon = answer(home, "status").bus.pid
    os.kill(daemon, signal.SIGSTOP)
    try:
        recall = Process(home, "recall", "anything", "--deadline", "50")
        until(lambda: connections(home, recall.child.pid), "a connection of the client")
        code, said = recall.end(signal.SIGINT)
    finally:
        os.kill(daemon, signal.SIGCONT)

    assert code == 130
    assert "Traceback" not in said
    assert "interrupted" in said


def connections(home: Path, pid: int) -> bool:
    """Does the process have a connection to the bus? Its sockets tell."""
    listed = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            sockets.add(str(entry.readlink()))
    own = [line.split() for line in listed if f"socket:[{line.split()[9]}]" in sockets]
    return any(fields[3] == "01" for fields in own)


@pytest.mark.parametrize("arguments", [("show", "log"), ("show", "log", "--json"), ("schema",)], ids=" ".join)
def test_reader_that_goes_away_is_no_error_to_speak_of(home: Path, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        result = subprocess.run(
            command(home, "--space", SPACE, *arguments),
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=WAIT_S,
        )

    assert result.stderr == ""
    assert result.returncode == 1


# -- on a terminal


def on_terminal(home: Path, *arguments: str, **environment: str) -> str:
    """What a terminal of 60 columns is sent."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command(home, "--space", SPACE, *arguments),
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **environment},
    )
    os.close(theirs)
    sent = bytearray()
    try:
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux: the other side was closed
                break
            if not part:
                break
            sent += part
        assert child.wait(WAIT_S) == 0, sent
    finally:
        child.kill()
        os.close(ours)
    return sent.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "log"),
        ("show", "log", "--json"),
        ("show", "sessions"),
        ("recall", "steering"),
        ("recall", "steering", "--json"),
    ],
    ids=" ".join,
)
def test_memory_never_steers_the_terminal(home: Path, arguments: tuple[str, ...]) -> None:
    sent = COLOUR.sub("", on_terminal(home, *arguments))

    assert "steering" in sent or "title" in sent
    assert not set("\x1b\x07\x9b\x7f\u202e\r") & set(sent)


def test_log_reads_like_a_conversation(home: Path) -> None:
    coloured = on_terminal(home, "show", "log", "--session", "long", "--lines", "6")
    lines = COLOUR.sub("", coloured).splitlines()

    assert COLOUR.search(coloured)
    assert re.search(r"^\w+day, \d+ \w+ \d{4} · long ─+$", lines[0])
    assert max(len(line.encode("euc-kr", "replace")) for line in lines if line[:1] == " " and "…" not in line) <= 60
    assert [line for line in lines if "more lines: `lamina why" in line]
    assert [line for line in lines if "more lines: `lamina read n" in line]


def test_log_in_a_pipe_is_plain_and_its_lines_are_whole(home: Path) -> None:
    text = lamina(home, "--space", SPACE, "show", "log", "--session", "long").stdout

    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) > 200


def test_no_color_is_respected(home: Path) -> None:
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", on_terminal(home, "show", "log", NO_COLOR="1"))


def test_a_memory_is_asked_how_well_it_recalls(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with SyncMemory.open(space=SPACE, home=home) as memory:
        memory.turn("user", "The nightly export of the orders goes to the harbour at two.", session="s", turn_id="t1")
        memory.turn("assistant", "Noted: every night at two, to the harbour.", session="s", turn_id="t2")
        memory.settled(layers=["l0"])
    try:
        result = lamina(home, "bench", "recall", "--space", SPACE, "--json")
        found = msgspec.json.decode(result.stdout, type=OUTPUTS["bench recall"])
        assert (result.returncode, found.questions, found.turns, found.missed) == (0, 1, 2, ())
        assert [(way.layers, way.first) for way in found.ways] == [(("l0",), 1.0), (("l0", "l1", "l2"), 1.0)]

        nobody = lamina(home, "bench", "recall", "--space", "nobody")
        assert (nobody.returncode, "no turn that a question could be made of" in nobody.stderr) == (1, True)
        assert lamina(home, "bench", "recall", "--count", "0").returncode == 2
    finally:
        lamina(home, "down")
