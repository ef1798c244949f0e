"""Configuration: environment over file over default; what is wrong is named with file, key and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina import config
from lamina.config import Config
from lamina.errors import Invalid, LaminaError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_without_a_file_all_is_default(path: Path) -> None:
    assert config.load(path, {}) == Config()


def test_environment_over_file_over_default(path: Path) -> None:
    path.write_text('[bus]\nurl = "nats://file:1"\nmax_bytes = 5\n[daemon]\nservices = ["journal"]\n')
    environ = {"LAMINA_BUS_URL": "nats://env:2", "LAMINA_DAEMON_SERVICES": "query, journal", "LAMINA_OTHER": "x"}

    found = config.load(path, environ)

    assert (found.bus.url, found.bus.max_bytes) == ("nats://env:2", 5)
    assert found.daemon.services == ("query", "journal")
    assert found.outbox == Config().outbox


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[bus]\nmax_byte = 5", "max_byte"),
        ("[buss]\n", "buss"),
        ("[bus]\nurl = 5", "bus.url"),
        ("bus = 5", "bus"),
        ('[bus]\nmax_bytes = "5"', "bus.max_bytes"),
        ("[bus]\nmax_bytes = -1", "bus.max_bytes"),
        ("[daemon]\nlog_level = 'loud'", "log_level"),
        ("[llm]\nbase_url = 'http://localhost:8080/v1'", "llm.model"),
        ("[llm]\nmodel = 'm'", "llm.base_url"),
        ("[llm]\nbase_url = 'localhost:8080'\nmodel = 'm'", "http://"),
        ("[llm]\nbase_url = 'http://x/v1'\nmodel = 'm'\ntokens_per_day = -1", "llm.tokens_per_day"),
        ("[llm]\nbase_url = 'http://x/v1'\nmodel = 'm'\ntokens_per_space = -1", "llm.tokens_per_space"),
        ("[llm]\napi_key = 'secret'", "api_key"),
        ("[bus]\nurl = 'a'\nurl = 'b'\n\n", "line 3"),
        ("[bus\n", "line 1"),
    ],
)
def test_what_is_wrong_is_named(path: Path, text: str, named: str) -> None:
    path.write_text(text)

    with pytest.raises(Invalid) as raised:
        config.load(path, {})

    assert named in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_model_is_configured(path: Path) -> None:
    path.write_text('[llm]\nbase_url = "http://localhost:8080/v1"\nmodel = "m"\ntokens_per_space = 5\n')

    found = config.load(path, {"LAMINA_LLM_API_KEY_ENV": "KEY", "LAMINA_LLM_TOKENS_PER_DAY": "0"}).llm

    assert (found.base_url, found.model, found.api_key_env) == ("http://localhost:8080/v1", "m", "KEY")
    assert (found.tokens_per_day, found.tokens_per_space) == (0, 5)


def test_a_wrong_variable_is_named(path: Path) -> None:
    with pytest.raises(Invalid, match="LAMINA_BUS_MAX_BYTES"):
        config.load(path, {"LAMINA_BUS_MAX_BYTES": "many"})


def test_a_file_that_is_none_is_a_typed_error(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(Invalid):
        config.load(path, {})
    path.unlink()
    path.mkdir()
    with pytest.raises(LaminaError):
        config.load(path, {})
    with pytest.raises(LaminaError):
        config.load(Path("/dev/null/config.toml"), {})


def test_a_switch_is_true_or_false(path: Path) -> None:
    assert config.load(path, {"LAMINA_RECALL_RECORD": "True"}).recall.record
    assert not config.load(path, {"LAMINA_RECALL_RECORD": "false"}).recall.record
    with pytest.raises(Invalid, match="LAMINA_RECALL_RECORD must be true or false"):
        config.load(path, {"LAMINA_RECALL_RECORD": "yes"})
