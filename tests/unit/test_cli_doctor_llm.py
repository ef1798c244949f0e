"""What `lamina doctor` says of the configured model."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from importlib.machinery import ModuleSpec

import pytest

from lamina.cli.doctor import model
from lamina.cli.doctor.finding import Finding
from lamina.config import Config, LlmConfig
from tests.support.llm import MODEL, Endpoint, Reply, declined, endpoint


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint() as scripted:
        yield scripted


def found(config: LlmConfig, environ: dict[str, str] | None = None) -> Finding:
    (finding,) = model.findings(Config(llm=config), environ or {})
    return finding


def test_without_a_model_there_is_nothing_to_say() -> None:
    assert list(model.findings(Config(), {})) == []
    assert list(model.findings(None, {})) == []


def test_a_model_that_is_listed_is_well(server: Endpoint) -> None:
    finding = found(LlmConfig(base_url=server.url, model=MODEL, api_key_env="KEY"), {"KEY": "secret"})

    assert finding.state == "ok"
    assert "secret" not in finding.found


@pytest.mark.parametrize(
    ("models", "state", "words"),
    [
        (Reply(body=b'{"data": [{"id": "models/scripted-1"}]}'), "ok", "scripted-1"),
        (Reply(body=b'{"data": []}'), "ok", "scripted-1"),
        (Reply(body=json.dumps({"data": [{"id": f"m{n}"} for n in range(9)]}).encode()), "broken", "m0, m1"),
        (declined(404), "ok", "no list"),
        (declined(401), "broken", "key"),
        (declined(500), "warning", "500"),
        (Reply(body=b"<html>"), "warning", "no list of models"),
        (Reply(body=b"[" * 100_000), "warning", "no list of models"),
        (Reply(body=b'{"data": [5]}'), "warning", "no list of models"),
    ],
)
def test_what_the_endpoint_says(server: Endpoint, models: Reply, state: str, words: str) -> None:
    server.models = models

    finding = found(LlmConfig(base_url=server.url, model=MODEL))

    assert finding.state == state
    assert words in finding.found
    assert (finding.remedy == "") == (state == "ok")


def test_nobody_listens() -> None:
    assert found(LlmConfig(base_url="http://127.0.0.1:9/v1", model=MODEL)).state == "warning"


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": "ключ"}, {"KEY": "a\nb"}])
def test_a_key_that_is_missing_or_none(server: Endpoint, environ: dict[str, str]) -> None:
    finding = found(LlmConfig(base_url=server.url, model=MODEL, api_key_env="KEY"), environ)

    assert finding.state == "broken"
    assert "KEY" in finding.found


def test_the_package_is_missing(server: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)

    finding = found(LlmConfig(base_url=server.url, model=MODEL))

    assert finding.state == "broken"
    assert "lamina[llm]" in finding.found
