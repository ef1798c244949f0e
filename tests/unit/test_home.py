"""A home and its locks: where things lie, who holds it, and what an unusable one says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import Conflict, Denied, Invalid
from lamina.home import Home, Lock, Runtime, held

NOBODY = 65_534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Permissions do not bind root; as another user they do."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_is_where_it_is_told_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "one"))
    monkeypatch.setenv("HOME", str(tmp_path))

    assert Home().path == tmp_path / "one"
    assert Home(tmp_path / "two").path == tmp_path / "two"
    monkeypatch.delenv("LAMINA_HOME")
    assert Home().path == tmp_path / ".lamina"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is no path"),
        ("a\0b", "is no path"),
        ("~no such user/x", "without ~"),
        ("/home-\udcff", "is no UTF-8"),
        (b"/home", "must be a path, not bytes"),
        (5, "must be a path, not int"),
    ],
)
def test_what_is_no_place_is_no_home(path: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Invalid, match=why):
        Home(path)
    if isinstance(path, str) and "\0" not in path:
        monkeypatch.setenv("LAMINA_HOME", path)
        with pytest.raises(Invalid, match=why):
            Home()


def test_keeps_secrets_to_its_owner(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.prepare()

    assert {path.stat().st_mode & 0o777 for path in (home.path, home.bus, home.run, home.outbox, home.spaces)} == {
        0o700
    }


def test_spaces_are_folders_of_encoded_names(home: Home) -> None:
    for name in ("alice", "Alice", "민수", "../x", "a/b"):
        home.space(name).mkdir()
    for other in ("UPPER", ".hidden", "a b"):
        (home.spaces / other).mkdir()

    assert home.space_names() == sorted(["alice", "Alice", "민수", "../x", "a/b"])
    assert all(path.parent == home.spaces for path in home.spaces.iterdir())


@pytest.mark.parametrize("below", ["", "below"])
def test_where_a_file_stands_no_home_can_be(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    home = Home(tmp_path / "file" / below)

    for use in (home.prepare, home.runtime, home.require_folder):
        with pytest.raises(Invalid, match="/file is a file; a home is a folder"):
            use()


def test_an_unreadable_home_is_denied(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    home.write_runtime(Runtime(pid=os.getpid(), started_us=0, url="x"))
    lock = Lock(home.daemon_lock)
    assert lock.take()
    home.path.chmod(0)
    try:
        with as_nobody():
            with pytest.raises(Denied):
                home.prepare()
            with pytest.raises(Denied):
                home.runtime()
    finally:
        home.path.chmod(0o700)
        lock.release()


class TestRuntime:
    def test_counts_while_the_daemons_lock_is_held(self, home: Home) -> None:
        runtime = Runtime(pid=os.getpid(), started_us=5, url="nats://127.0.0.1:1")
        home.write_runtime(runtime)
        assert home.runtime() is None
        lock = Lock(home.daemon_lock)
        lock.require("test")
        assert home.runtime() == runtime
        lock.release()
        assert home.runtime() is None

    @pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"pid":"x"}', b"\xff"])
    def test_a_damaged_file_is_none(self, home: Home, raw: bytes) -> None:
        lock = Lock(home.daemon_lock)
        assert lock.take()
        home.runtime_file.write_bytes(raw)

        assert home.runtime() is None
        lock.release()

    def test_only_its_own_is_removed(self, home: Home) -> None:
        lock = Lock(home.daemon_lock)
        assert lock.take()
        home.write_runtime(Runtime(pid=os.getpid(), started_us=0, url="x"))
        home.clear_runtime(os.getpid() + 1)
        assert home.runtime_file.exists()
        home.clear_runtime(os.getpid())
        assert not home.runtime_file.exists()
        lock.release()


class TestLock:
    def test_has_one_holder_and_names_it(self, tmp_path: Path) -> None:
        one, other = Lock(tmp_path / "a.lock"), Lock(tmp_path / "a.lock")

        assert one.take()
        assert not other.take()
        assert other.holder() == os.getpid()
        with pytest.raises(Conflict, match=f"{os.getpid()}"):
            other.require("something")
        one.release()
        other.require("something")
        other.release()
        other.release()

    def test_is_given_back_when_its_holder_dies(self, tmp_path: Path) -> None:
        path = tmp_path / "a.lock"
        code = (
            "import os; from pathlib import Path; from lamina.home import Lock; "
            f"Lock(Path({str(path)!r})).take(); print(1, flush=True); os.read(0, 1)"
        )
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        assert held(path)
        child.kill()
        child.communicate()

        assert not held(path)
        assert Lock(path).holder() == child.pid

    def test_knows_when_its_file_was_replaced(self, tmp_path: Path) -> None:
        lock = Lock(tmp_path / "a.lock")
        assert not lock.in_place
        lock.take()
        assert lock.in_place
        lock.path.unlink()
        assert not lock.in_place
        lock.path.write_text("")
        assert not lock.in_place
        lock.release()

    def test_a_look_does_not_make_a_file(self, tmp_path: Path) -> None:
        assert not held(tmp_path / "none.lock")
        assert list(tmp_path.iterdir()) == []
