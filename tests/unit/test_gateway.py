"""Health, metrics and rates, from looks that are made up; the HTTP face, by Litestar's own client."""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path

import msgspec
import pytest
from litestar import Litestar
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from lamina.cli.command import Context
from lamina.cli.state import BusStatus, Lag, Log, Outcomes, ServiceStatus, Status, Tokens, WorkerStatus
from lamina.cli.top import moment, table
from lamina.errors import Invalid
from lamina.gateway.app import application
from lamina.gateway.commands import address, serve
from lamina.gateway.exposition import exposition
from lamina.gateway.health import Health, Watch, judged
from lamina.home import Home

LOG = Log(epoch="e", first_seq=1, last_seq=100, messages=100, size_bytes=5_000, max_bytes=10_000)


def service(
    name: str = "journal", *, position: int = 90, behind: int | None = 10, beat_s: float = 0.5, applied: int = 90
) -> ServiceStatus:
    worker = WorkerStatus(pid=7, position=position, applied=applied, due=2, beat_seconds=beat_s)
    lag = Lag(behind, 1.5 if behind else 0.0)
    return ServiceStatus(name=name, lanes=256, workers=(worker,), lag=lag, errors=3, dead=1, last_error="disk")


def looked(*services: ServiceStatus, last_seq: int = 100, state: str = "up") -> Status:
    log = msgspec.structs.replace(LOG, last_seq=last_seq)
    bus = BusStatus(state=state, home="/h", log=log if state == "up" else None, waiting=4)
    return Status(bus=bus, services=services, tokens=Tokens(refused=5, saved=70, spent=60))


def test_what_moves_is_green_however_far_behind() -> None:
    watch, _ = judged(Watch(), looked(service(position=10, behind=90)), 0.0)

    _, health = judged(watch, looked(service(position=11, behind=89)), 600.0)

    assert health == Health(status="green")


def test_what_is_behind_and_stands_still_turns_red_after_a_minute_and_says_why() -> None:
    watch, first = judged(Watch(), looked(service()), 0.0)
    watch, early = judged(watch, looked(service()), 59.0)
    watch, late = judged(watch, looked(service()), 60.0)
    _, again = judged(watch, looked(service(position=95, behind=5)), 61.0)

    assert [first.status, early.status, late.status, again.status] == ["green", "green", "red", "green"]
    assert late.faults[0].part == "journal"
    assert late.faults[0].why == "10 events behind, and has not moved for 60 s; its last error: disk"


def test_what_has_nothing_to_do_stands_still_in_peace() -> None:
    watch, _ = judged(Watch(), looked(service(behind=0)), 0.0)

    watch, quiet = judged(watch, looked(service(behind=0)), 3_600.0)
    _, woken = judged(watch, looked(service(behind=1)), 3_601.0)

    assert (quiet.status, woken.status) == ("green", "green")


@pytest.mark.parametrize(
    ("status", "part"),
    [
        (looked(state="down"), "bus"),
        (looked(state="unreachable"), "bus"),
        (looked(service(beat_s=16.0)), "journal"),
        (looked(msgspec.structs.replace(service(), workers=())), "journal"),
    ],
)
def test_what_needs_somebody_is_red_at_once(status: Status, part: str) -> None:
    _, health = judged(Watch(), status, 0.0)

    assert health.status == "red"
    assert [fault.part for fault in health.faults] == [part]


def test_metrics_are_what_prometheus_reads() -> None:
    atoms = msgspec.structs.replace(service("atoms", behind=None), turns=Outcomes(8, 1, 2))

    text = exposition(looked(service(), atoms), Health(status="red")).decode()

    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["lamina_healthy",] == 0
    assert found["lamina_log_last_seq",] == 100
    assert found["lamina_service_lag_events", "journal"] == 10
    assert ("lamina_service_lag_events", "atoms") not in found, "what is not known is not told as 0"
    assert found["lamina_service_turns", "atoms", "parked"] == 2
    assert found["lamina_service_applied_total", "7", "journal"] == 90
    assert found["lamina_tokens_spent",] == 60


def test_rates_compare_a_look_with_the_one_before() -> None:
    before = looked(service(applied=50), last_seq=100)

    first = moment(None, before, 10.0)
    now = moment((10.0, before), looked(service(applied=90, behind=60), last_seq=120), 14.0)

    assert (first.published_per_second, first.rates[0].events_per_second) == (None, None)
    assert now.published_per_second == 5
    assert (now.rates[0].events_per_second, now.rates[0].eta_s) == (10, 6)
    assert "journal        1        10      60    6.0 s    2       3     1" in table(now)


def test_a_new_epoch_and_a_new_process_have_no_rate_yet() -> None:
    old = msgspec.structs.replace(LOG, epoch="another")
    before = looked(service(applied=5_000))
    before = msgspec.structs.replace(before, bus=msgspec.structs.replace(before.bus, log=old))
    worker = WorkerStatus(pid=8, applied=1)

    now = moment((0.0, before), looked(msgspec.structs.replace(service(), workers=(worker,))), 1.0)

    assert (now.published_per_second, now.rates[0].events_per_second) == (None, None)


@pytest.fixture
def client(tmp_path: Path) -> TestClient[Litestar]:
    client = TestClient(application(Home(tmp_path / "home")), base_url="http://test.local")
    client.headers["host"] = "localhost:7340"
    return client


def test_a_home_where_nothing_runs_is_alive_and_not_ready(client: TestClient[Litestar]) -> None:
    assert client.get("/livez").text == "ok\n"
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["faults"][0]["part"] == "bus"
    assert client.get("/status").json()["bus"]["state"] == "down"
    assert "lamina_bus_up 0.0" in client.get("/metrics").text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:7340", "[zz", "", "localhost@evil.example"])
def test_a_page_of_another_name_is_refused(client: TestClient[Litestar], host: str) -> None:
    assert client.get("/status", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:7340", "[::1]:80", "LOCALHOST"])
def test_a_name_of_this_machine_is_answered(client: TestClient[Litestar], host: str) -> None:
    assert client.get("/status", headers={"host": host}).status_code == 200


def test_a_token_is_asked_for_everywhere_but_for_liveness(tmp_path: Path) -> None:
    client = TestClient(application(Home(tmp_path / "home"), token="wöord", hosts=()), base_url="http://any.local")

    assert client.get("/livez").status_code == 200
    assert client.get("/status").status_code == 401
    assert client.get("/status", headers={"authorization": "Bearer woord"}).status_code == 401
    assert client.get("/status", headers={b"authorization": "Bearer wöord".encode()}).status_code == 200


@pytest.mark.parametrize("text", ["", "127.0.0.1:", ":x", "127.0.0.1:70000", "a:-1"])
def test_an_address_that_is_none_says_how_one_looks(text: str) -> None:
    with pytest.raises(Invalid, match="HOST:PORT"):
        address(text)


def test_a_port_alone_is_on_loopback() -> None:
    assert (address("7340"), address("[::1]:0")) == (("127.0.0.1", 7340), ("::1", 0))


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.com:80"])
@pytest.mark.parametrize("given", [{}, {"tls_cert": "c", "tls_key": "k"}, {"token_env": "LAMINA_TEST_TOKEN"}])
def test_off_loopback_needs_tls_and_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listen: str, given: dict[str, str]
) -> None:
    monkeypatch.setenv("LAMINA_TEST_TOKEN", "t")
    options = argparse.Namespace(listen=listen, **{"tls_cert": None, "tls_key": None, "token_env": None, **given})
    context = Context(home=Home(tmp_path), space="s", json=False, out=io.StringIO(), err=io.StringIO())

    with pytest.raises(Invalid, match="other machines"):
        serve.run(context, options)


def test_dashboard_and_alerts_ask_for_metrics_that_there_are() -> None:
    atoms = msgspec.structs.replace(service("atoms"), turns=Outcomes(1, 1, 1))
    text = exposition(looked(service(), atoms), Health(status="green")).decode()
    told = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    folder = Path(__file__).parents[2] / "infra" / "observe"

    for name in ("grafana.json", "alerts.yml"):
        asked = set(re.findall(r"\blamina_[a-z_]+", (folder / name).read_text(encoding="utf-8")))
        assert asked, name
        assert asked <= told, name
    assert msgspec.json.decode((folder / "grafana.json").read_bytes())["title"] == "Lamina"
