"""Checks of a home as it lies on disk."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lamina import config as configuration
from lamina.cli.command import Context
from lamina.cli.doctor.finding import Finding, broken, ok, warning
from lamina.cli.output import size_text
from lamina.cli.state import waiting_events
from lamina.config import Config
from lamina.errors import Denied, Invalid
from lamina.home import Home, alive, held

NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smbfs",
    "smb3",
    "afpfs",
    "webdav",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "fuse.sshfs",
)
LITTLE_BYTES, TOO_LITTLE_BYTES = 1_000_000_000, 100_000_000


def settings(home: Home) -> tuple[Config | None, Finding]:
    try:
        config = configuration.load(home.config)
    except Invalid as error:
        return None, broken("config", str(error), "mend the file; `lamina config` of another home shows every key")
    except (Denied, OSError) as error:
        return None, broken("config", str(error), "let this user read it")
    return config, ok("config", str(home.config) if home.config.exists() else "no config.toml: defaults")


def usable(home: Home) -> Finding:
    if not home.path.exists():
        parent = next(folder for folder in home.path.parents if folder.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            return ok("home", f"{home.path} is not there yet; the first client makes it")
        return broken(
            "home", f"{home.path} cannot be made in {parent}", "choose another place: --home or LAMINA_HOME"
        )
    if not home.path.is_dir():
        return broken("home", f"{home.path} is no folder", "choose another place: --home or LAMINA_HOME")
    for folder in (home.path, home.bus, home.run, home.outbox, home.spaces):
        if folder.exists() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            owner, own = folder.stat().st_uid, os.getuid()
            remedy = f"chmod u+rwx {folder}" if owner == own else f"chown -R {own} {home.path}, or use another home"
            found = f"{folder} cannot be read and written by this user ({own}; it belongs to {owner})"
            return broken("home", found, remedy)
    return ok("home", str(home.path))


def private(home: Home) -> Finding:
    """Memory and credentials are their owner's alone."""
    open_ = [
        path
        for path in (home.path, home.bus, home.run, home.outbox, home.spaces, home.bus / "credentials.json")
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    if not open_:
        return ok("permissions", "of this user alone")
    secret = home.bus in open_ or home.bus / "credentials.json" in open_
    remedy = f"chmod -R go-rwx {home.path}"
    if secret:
        return broken("permissions", f"others can reach the credentials of the log: {_names(open_)}", remedy)
    return warning("permissions", f"others can reach {_names(open_)}", remedy)


def _names(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))


def local(home: Home) -> Finding:
    """SQLite and the locks need a local file system."""
    kind = file_system(home.path)
    if kind in NETWORK:
        return broken(
            "file system", f"{home.path} lies on {kind}: its locks do not hold", "move the home to a local disk"
        )
    return ok("file system", f"{kind or 'unknown'}, local")


def file_system(path: Path) -> str:
    """The type of the file system below `path`, empty where the system does not tell."""
    there = next(folder for folder in (path, *path.parents) if folder.exists()).resolve()
    mounts = _linux_mounts() if sys.platform == "linux" else _other_mounts()
    best = max(
        (point for point in mounts if there.is_relative_to(point)), key=lambda point: len(point.parts), default=None
    )
    return mounts[best] if best is not None else ""


def _linux_mounts() -> dict[Path, str]:
    found = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) > 4 and kinds:
            found[Path(fields[4].encode().decode("unicode_escape"))] = kinds[0]
    return found


def _other_mounts() -> dict[Path, str]:
    listed = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False, timeout=5)
    found = {}
    for line in listed.stdout.splitlines():
        place, _, options = line.partition(" on ")[2].rpartition(" (")
        found[Path(place)] = options.split(",")[0]
    return found


def disk(home: Home) -> Finding:
    there = next(folder for folder in (home.path, *home.path.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    found = f"{size_text(free)} free"
    if free < TOO_LITTLE_BYTES:
        return broken("disk", f"only {found}: nothing more can be accepted soon", f"make room below {there}")
    if free < LITTLE_BYTES:
        return warning("disk", found, f"make room below {there}, or set bus.max_bytes")
    return ok("disk", found)


def outboxes(home: Home) -> Finding:
    """Events that clients accepted while the log was away."""
    rejected = sorted(home.outbox.glob("*.rejected"))
    if rejected:
        why = _first_reason(rejected[0])
        return warning(
            "outbox",
            f"{len(rejected)} files of events that the log refused, the first: {why}",
            f"read {rejected[0]}; delete it when its events are not needed",
        )
    waiting = waiting_events(home)
    if waiting:
        return warning("outbox", f"{waiting} events wait for the log", "`lamina up`, then any client publishes them")
    return ok("outbox", "nothing waits")


def _first_reason(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        line = file.readline()
    try:
        return str(json.loads(line)["why"])
    except (ValueError, LookupError, TypeError):
        return line[:200]


def leftovers(home: Home) -> Finding:
    """Files that a process left behind which did not end by itself."""
    lock = held(home.run / "daemon.lock")
    runtime = home.runtime()
    if home.runtime_file.exists() and not (lock and runtime):
        return warning(
            "runtime file",
            f"{home.runtime_file} tells of a daemon that is gone: it was killed, or the machine went down",
            "nothing to do: the next start replaces it, and folds what is missing",
        )
    if lock and runtime is None:
        return warning(
            "runtime file",
            "a daemon holds the home and takes no clients yet",
            f"wait a moment; else see {home.log_file}",
        )
    server = _server_pid(home)
    if not lock and server and alive(server) and held(home.bus / "lock"):
        return warning(
            "runtime file", f"process {server} runs the bus without a daemon", "`lamina up` ends it and begins anew"
        )
    return ok("runtime file", "fits what runs" if lock else "none, and nothing runs")


def _server_pid(home: Home) -> int:
    try:
        return int(json.loads((home.bus / "server.json").read_text())["pid"])
    except (OSError, ValueError, LookupError, TypeError):
        return 0


def findings(context: Context) -> Iterator[Finding]:
    home = context.home
    found = usable(home)
    yield found
    yield local(home)
    yield disk(home)
    if found.state == "ok" and home.path.exists():
        yield private(home)
        yield outboxes(home)
        yield leftovers(home)
