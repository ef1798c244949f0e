"""Every trouble that `doctor` knows is found, told in words, and given a remedy."""

from __future__ import annotations

import io
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from lamina.bus import Message
from lamina.cli import state as state_module
from lamina.cli.command import Context
from lamina.cli.doctor import command, live, machine, place
from lamina.cli.doctor.finding import Finding, broken, ok, warning
from lamina.cli.state import BusStatus, Lag, Log, ServiceStatus, Status, Tokens, WorkerStatus, count_parked
from lamina.config import BusConfig, Config, EmbeddingConfig
from lamina.errors import Unavailable
from lamina.home import Home, Lock, Runtime
from tests.support.embeddings import endpoint


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def told(finding: Finding, state: str, *words: str) -> None:
    assert finding.state == state, finding
    assert [word for word in words if word not in f"{finding.found} {finding.remedy}"] == [], finding
    assert (finding.remedy == "") == (state == "ok")


# -- the machine


def test_a_sound_machine_has_nothing_broken() -> None:
    assert [finding for finding in machine.findings(Config()) if finding.state == "broken"] == []


def test_python_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 1, "final", 0))

    told(machine.python(), "broken", "3.10.1", "3.11")


def test_sqlite_without_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SQLITE_VERSION", (3, 40, 0))

    told(machine.sqlite(), "warning", "3.51.3", "pysqlite3")


class Fails:
    """A SQLite that lacks what is asked of it."""

    sqlite_version = "3.40.0"
    __name__ = "sqlite3"
    Error = sqlite3.Error

    def connect(self, _: str) -> Fails:
        return self

    def execute(self, statement: str) -> None:
        raise sqlite3.OperationalError("no such module: fts5")

    def close(self) -> None:
        pass


def test_sqlite_without_full_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "driver", Fails())

    told(machine.full_text(), "broken", "fts5", "pysqlite3")


def test_vectors_without_a_model_switched_off_and_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    def at(url: str, key: str = "") -> Config:
        return Config(embedding=EmbeddingConfig(provider="endpoint", base_url=url, model="m", api_key_env=key))

    with endpoint() as fake:
        told(machine.vectors(at(fake.url)), "ok", "endpoint-m-")
        told(machine.vectors(at(fake.url, "NO_SUCH_KEY")), "broken", "NO_SUCH_KEY", "[embedding]")
        fake.status = 503
        told(machine.vectors(at(fake.url)), "warning", "503", "keyword")
    told(machine.vectors(Config(embedding=EmbeddingConfig(provider="none"))), "ok", "switched off")
    monkeypatch.setattr(machine, "chosen", lambda config: None)
    told(machine.vectors(None), "warning", "keyword alone", "pip install")


def nats_that_says(tmp_path: Path, script: str) -> Path:
    binary = tmp_path / "nats-server"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    return binary


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        ("echo nats-server: v2.15.1", "ok", ("2.15.1",)),
        ("echo nats-server: v2.12.0", "warning", ("2.14",)),
        ("echo nats-server: v2.9.25", "broken", ("too old", "pip install")),
        ("echo hello >&2; exit 3", "broken", ("hello",)),
    ],
)
def test_version_of_nats_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: str, words: tuple[str, ...]
) -> None:
    binary = nats_that_says(tmp_path, script)
    monkeypatch.setattr(machine, "find_binary", lambda: binary)

    told(machine.nats_server(Config()), state, *words)


def test_nats_server_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "nats-server"
    binary.write_bytes(b"\x7fELF of another machine")
    binary.chmod(0o755)
    monkeypatch.setattr(machine, "find_binary", lambda: binary)

    told(machine.nats_server(None), "broken", "does not run")


def test_no_nats_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise Unavailable("no nats-server found; install it")

    monkeypatch.setattr(machine, "find_binary", none)

    told(machine.nats_server(Config()), "broken", "install it")
    told(machine.nats_server(Config(bus=BusConfig(url="nats://elsewhere:4222"))), "ok")


def test_few_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 1 << 20))

    told(machine.descriptors(), "warning", "256", "ulimit -n 4096")


def test_service_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise ImportError("No module named 'stranger'")

    monkeypatch.setattr(machine, "services", fails)

    told(machine.installed(), "broken", "stranger")


# -- the home


def test_a_sound_home_is_well(home: Home) -> None:
    context = Context(home=home, space="s", json=False, out=io.StringIO(), err=io.StringIO())

    assert {finding.state for finding in place.findings(context) if finding.check != "disk"} == {"ok"}


def test_home_that_is_not_there_yet_is_well(tmp_path: Path) -> None:
    told(place.usable(Home(tmp_path / "a" / "b")), "ok", "first client")


def test_malformed_config(home: Home) -> None:
    home.config.write_text("[bus]\nport = 3\n", encoding="utf-8")
    config, finding = place.settings(home)

    assert config is None
    told(finding, "broken", "port", str(home.config))


def test_others_can_read_the_home(home: Home) -> None:
    home.path.chmod(0o755)
    told(place.private(home), "warning", str(home.path), "chmod -R go-rwx")
    home.bus.chmod(0o750)
    told(place.private(home), "broken", "credentials", str(home.bus))


@pytest.mark.parametrize(("kind", "state"), [("nfs4", "broken"), ("cifs", "broken"), ("ext4", "ok"), ("apfs", "ok")])
def test_network_file_system(home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, state: str) -> None:
    mounts = {Path("/"): "ext4", home.path.resolve().parent: kind}
    monkeypatch.setattr(place, "_linux_mounts", lambda: mounts)
    monkeypatch.setattr(place, "_other_mounts", lambda: mounts)

    told(place.local(home), state, kind)


def test_mounts_of_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "/dev/disk3s1s1 on / (apfs, sealed, local)\n//u@host/share on /Volumes/a share (smbfs, nodev)\n"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, listed, ""))

    assert place._other_mounts() == {Path("/"): "apfs", Path("/Volumes/a share"): "smbfs"}


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(("free", "state"), [(10**7, "broken"), (5 * 10**8, "warning"), (10**10, "ok")])
def test_little_room(home: Home, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, free))

    told(place.disk(home), state, "free")


def test_outboxes(home: Home) -> None:
    told(place.outboxes(home), "ok")
    (home.outbox / "1-2.jsonl").write_bytes(b"{}\n{}\n")
    told(place.outboxes(home), "warning", "2 events wait", "lamina up")
    (home.outbox / "1-2.rejected").write_bytes(b'{"why":"published before with other content","event":{}}\n')
    told(place.outboxes(home), "warning", "published before", "1-2.rejected")


def test_stale_runtime_file(home: Home) -> None:
    home.runtime_file.write_bytes(msgspec.json.encode(Runtime(pid=2**22 - 1, started_us=1, url="nats://x")))

    told(place.leftovers(home), "warning", "gone", "next start")


def test_daemon_that_takes_no_clients(home: Home) -> None:
    lock = Lock(home.run / "daemon.lock")
    assert lock.take()
    try:
        told(place.leftovers(home), "warning", "no clients", str(home.log_file))
    finally:
        lock.release()


# -- what runs


def status_with(*services: ServiceStatus, used: int = 0) -> Status:
    log = Log(epoch="e", first_seq=1, last_seq=1, messages=1, size_bytes=used, max_bytes=100)
    return Status(bus=BusStatus(state="up", home="h", log=log), services=services, tokens=Tokens(0))


def service(*ages: float, errors: int = 0, dead: int = 0) -> ServiceStatus:
    workers = tuple(WorkerStatus(pid=1, beat_seconds=age) for age in ages)
    return ServiceStatus(
        name="atoms", lanes=256, workers=workers, lag=Lag(0, 0.0), errors=errors, dead=dead, last_error="it broke"
    )


def test_services() -> None:
    told(live.workers(status_with(service(0.5)))[0], "ok", "atoms")
    told(live.workers(status_with(service()))[0], "broken", "nobody", "lamina worker atoms")
    told(live.workers(status_with(service(60.0)))[0], "broken", "no sign of life for 1 min")
    told(live.workers(status_with(service(60.0, 0.1)))[0], "ok")
    told(
        live.workers(status_with(service(0.1, dead=3)))[0],
        "warning",
        "3 events",
        "`lamina status` shows the last reason",
    )
    told(live.workers(status_with(service(0.1, errors=2)))[0], "warning", "2 errors", "it broke")


def test_nearly_full_log() -> None:
    told(live.room(status_with(used=50)), "ok", "50%")
    told(live.room(status_with(used=95)), "warning", "95%", "bus.max_bytes in config.toml")


def test_daemon_of_another_version() -> None:
    told(live.versions(Runtime(pid=1, started_us=1, url="u", version="0.0.1")), "warning", "0.0.1", "lamina down")


def test_server_that_does_not_fsync(home: Home) -> None:
    told(live.sync_written(home), "ok")
    (home.bus / "server.conf").write_text("jetstream {\n  sync_interval: 2m\n}\n", encoding="utf-8")
    told(live.sync_written(home), "broken", "fsync")


class LastMessage:
    """A bus that holds one message."""

    def __init__(self, at_s: float) -> None:
        self.at_us = int(at_s * 1e6)

    async def last(self, subject: str, *, timeout_s: float) -> Message:
        return Message(1, "lamina.ev.0.s.x", b"", self.at_us, None)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("ahead_s", "state"), [(7200.0, "warning"), (-5.0, "ok")])
async def test_clock_that_was_set_back(monkeypatch: pytest.MonkeyPatch, ahead_s: float, state: str) -> None:
    async def connected(_: Runtime) -> LastMessage:
        return LastMessage(time.time() + ahead_s)

    monkeypatch.setattr(live, "connected", connected)
    finding = await live.clock(Runtime(pid=1, started_us=1, url="u"))

    told(finding, state, *(("2 h", "NTP") if state == "warning" else ()))


def journal_with(home: Home, last_us: int) -> None:
    views = home.space("마감") / "views"
    views.mkdir(parents=True)
    with sqlite3.connect(views / "journal.1.db") as db:
        db.execute("CREATE TABLE sessions(session TEXT, last_us INTEGER)")
        db.execute("INSERT INTO sessions VALUES('s', ?)", (last_us,))
        db.execute("CREATE TABLE dead(seq INTEGER, id TEXT, type TEXT, error TEXT)")
        db.executemany("INSERT INTO dead VALUES(?, 'e1', 'turn.recorded', ?)", [(1, "old"), (2, "new")])
        db.execute("CREATE TABLE refused(tokens INTEGER)")
        db.execute("INSERT INTO refused VALUES(70)")
    db.close()
    (views / "journal.db").symlink_to("journal.1.db")


def test_events_of_the_future(home: Home) -> None:
    told(live.future(home), "ok")
    journal_with(home, int((time.time() + 90 * 86_400) * 1e6))
    told(live.future(home), "warning", "_eb_a7_88")


def test_status_counts_what_is_parked(home: Home) -> None:
    journal_with(home, 1)
    parked = count_parked(home)

    assert (parked.dead, parked.refused_tokens, parked.complete) == ({"journal": 2}, 70, True)
    assert parked.last == {"journal": "turn.recorded e1: new"}


def test_status_does_not_count_for_ever(home: Home) -> None:
    journal_with(home, 1)

    assert not count_parked(home, within_s=-1.0).complete


def test_status_leaves_out_a_broken_view(home: Home) -> None:
    journal_with(home, 1)
    (home.space("마감") / "views" / "journal.1.db").write_bytes(b"no database" * 1000)

    assert count_parked(home).dead == {}


def test_status_counts_waiting_events(home: Home) -> None:
    (home.outbox / "1-2.jsonl").write_bytes(b"{}\n" * 3)

    assert state_module.waiting_events(home) == 3


# -- telling it


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    findings: list[Finding] = []
    monkeypatch.setattr(
        command, "examine", lambda _: command.Report(state=command.worst(findings), findings=tuple(findings))
    )
    return findings


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ([], 0, ("all 1 checks are well",)),
        (
            [warning("clock", "it is late", "set it")],
            0,
            ("warning", "it is late", "→ set it", "0 broken, 1 warnings"),
        ),
        ([broken("disk", "full", "make room")], 1, ("broken", "→ make room", "1 broken")),
    ],
)
def test_report(home: Home, found: list[Finding], more: list[Finding], code: int, words: tuple[str, ...]) -> None:
    found += [ok("python", "3.13"), *more]
    out = io.StringIO()
    context = Context(home=home, space="s", json=False, out=out, err=io.StringIO())

    assert command.doctor.run(context, None) == code  # type: ignore[arg-type]
    assert [word for word in words if word not in out.getvalue()] == []
