"""Redaction replaces what its patterns match, wherever text stands, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina import config
from lamina.client.redact import Redactor
from lamina.errors import Invalid

SECRETS = Redactor((r"sk-[a-z0-9]{8,}", r"(?i)password=\S+"))


def test_text_and_bytes() -> None:
    assert SECRETS.text("key sk-abcdef1234, PASSWORD=hunter2 end") == "key [redacted], [redacted] end"
    assert SECRETS.text(b"key sk-abcdef1234") == b"key [redacted]"
    assert SECRETS.text(b"\xff sk-abcdef1234") == b"\xff sk-abcdef1234"


def test_arguments_are_searched_at_every_depth_and_keys_stay() -> None:
    given = {"sk-abcdef1234": ["sk-abcdef1234", {"n": 7, "cmd": "curl password=x"}]}

    assert SECRETS.value(given) == {"sk-abcdef1234": ["[redacted]", {"n": 7, "cmd": "curl [redacted]"}]}


def test_without_patterns_nothing_is_touched() -> None:
    given = {"a": "sk-abcdef1234"}

    assert Redactor().value(given) is given


def test_a_wrong_pattern_refuses_to_start(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[offload]\nredact = ["(unclosed"]\n')

    with pytest.raises(Invalid, match=r"offload\.redact.*unclosed"):
        config.load(path, {})
