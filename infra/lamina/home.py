"""A home on disk: where everything of one node lies, and who may touch it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from lamina.errors import Conflict, Invalid
from lamina.ids import token, untoken
from lamina.store.files import translated_os, write_atomic

DEFAULT_HOME = "~/.lamina"
PROBE_S = 0.2


class Runtime(Struct, frozen=True, kw_only=True):
    """What a client needs to reach the daemon of a home: written when it is ready, removed when it stops."""

    pid: int
    started_us: int
    url: str
    monitor_url: str = ""
    credentials: str = ""
    version: str = ""


class Home:
    """The folder of one node. Never on a network file system: its locks and its SQLite files need a local one."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """At `path`, LAMINA_HOME or ~/.lamina; `Invalid` for what is no path or has a `~` of nobody's."""
        chosen = path if path is not None else os.environ.get("LAMINA_HOME", DEFAULT_HOME)
        self.path = _absolute(chosen)

    def require_folder(self) -> None:
        """`Invalid` where a file stands in the place of the home or of a folder above it."""
        with translated_os(self.path):
            standing = next(place for place in (self.path, *self.path.parents) if place.exists())
            if not standing.is_dir():
                raise Invalid(f"{standing} is a file; a home is a folder")

    def prepare(self) -> None:
        """Make the folders. `Denied` or `DiskFull` when it cannot be; 0700 where secrets lie."""
        self.require_folder()
        with translated_os(self.path):
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            for folder in (self.bus, self.run, self.outbox, self.spaces):
                folder.mkdir(exist_ok=True, mode=0o700)

    @property
    def bus(self) -> Path:
        return self.path / "bus"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def outbox(self) -> Path:
        return self.path / "outbox"

    @property
    def spaces(self) -> Path:
        return self.path / "spaces"

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def runtime_file(self) -> Path:
        return self.run / "daemon.json"

    @property
    def daemon_lock(self) -> Path:
        return self.run / "daemon.lock"

    @property
    def log_file(self) -> Path:
        return self.run / "daemon.log"

    def space(self, name: str) -> Path:
        """The folder of a space, which need not exist; its name is the encoded id."""
        return self.spaces / token(name)

    def space_names(self) -> list[str]:
        """The spaces that have a folder here, sorted; folders that are no encoded id are not spaces."""
        names = []
        if self.spaces.is_dir():
            for folder in self.spaces.iterdir():
                try:
                    names.append(untoken(folder.name))
                except Invalid:
                    continue
        return sorted(names)

    def runtime(self) -> Runtime | None:
        """The runtime file of a daemon that is alive, or None (a stale file counts as none).

        Alive is who holds the daemon's lock: a process number may have been given to another program since, or
        belong to a dead child that its parent has not looked after.
        """
        self.require_folder()
        with translated_os(self.runtime_file):
            if not held(self.daemon_lock):
                return None
            try:
                raw = self.runtime_file.read_bytes()
            except FileNotFoundError:
                return None
        try:
            runtime = msgspec.json.decode(raw, type=Runtime)
        except msgspec.MsgspecError:
            return None  # a daemon that died while writing it cannot have been ready
        return runtime if alive(runtime.pid) else None  # the next daemon may hold the lock already

    def write_runtime(self, runtime: Runtime) -> None:
        write_atomic(self.runtime_file, msgspec.json.encode(runtime))

    def clear_runtime(self, pid: int) -> None:
        """Remove the runtime file if it is `pid`'s own, or nobody's."""
        current = self.runtime()
        if current is None or current.pid == pid:
            self.runtime_file.unlink(missing_ok=True)


def _absolute(path: str | os.PathLike[str]) -> Path:
    """The place that a path names, `~` read; the empty path is no place, least of all the current folder."""
    try:
        text = os.fspath(path)
        text.encode()
        if not text or "\0" in text:
            raise Invalid(f"the home {text!a} is no path; give a folder, or leave --home and LAMINA_HOME out")
        return Path(text).expanduser().absolute()
    except (TypeError, AttributeError) as error:
        raise Invalid(f"a home must be a path, not {type(path).__name__}") from error
    except UnicodeEncodeError as error:
        raise Invalid(f"the home {path!a} is no UTF-8; give a folder with a readable name") from error
    except RuntimeError as error:
        raise Invalid(
            f"the home {str(path)!a} cannot be found: there is no such user; give a path without ~"
        ) from error


class Lock:
    """An advisory lock on a file of the home; the kernel gives it back when its holder dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def take(self, *, wait: bool = False) -> bool:
        """True when this process holds it now; with `wait` it blocks until it does."""
        with translated_os(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(handle)
            return False
        self._handle = handle
        with contextlib.suppress(OSError):  # a full disk takes no name, but the lock is the kernel's
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        return True

    def holder(self) -> int | None:
        """The process that took it last, as far as the file tells."""
        try:
            text = self.path.read_text().strip()
        except OSError:
            return None
        return int(text) if text.isdigit() else None

    def require(self, what: str) -> None:
        """Take it or raise `Conflict` naming the holder."""
        until = time.monotonic() + PROBE_S
        while not self.take():  # somebody may be looking whether it is held, for a moment
            if time.monotonic() > until:
                raise Conflict(f"{what} (process {self.holder()} holds {self.path}); stop it with `lamina down`")
            time.sleep(0.01)

    @property
    def in_place(self) -> bool:
        """Is the file that is locked still the one that others would lock?"""
        if self._handle is None:
            return False
        try:
            found, own = self.path.stat(), os.fstat(self._handle)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def held(path: Path) -> bool:
    """Does some process hold the lock on this file now?"""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def alive(pid: int) -> bool:
    """Is there such a process? One of another user counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
