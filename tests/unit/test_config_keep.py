"""`[bus] keep`: sizes and days, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.config import Keep, keep_of, load
from lamina.errors import Invalid


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("2 GiB", Keep(size_bytes=2 * 1024**3)),
        ("512MiB", Keep(size_bytes=512 * 1024**2)),
        ("30 d", Keep(seconds=30 * 86_400)),
    ],
)
def test_a_size_or_days(text: str, keep: Keep) -> None:
    assert keep_of(text) == keep


@pytest.mark.parametrize("text", ["2", "GiB", "-1 d", "0 d", "2 GB", "1.5 GiB", "30 d d", "٣ d", "9" * 30 + " d"])
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid, match="keep"):
        keep_of(text)
    config = tmp_path / "config.toml"
    config.write_text(f'[bus]\nkeep = "{text}"\n', encoding="utf-8")
    with pytest.raises(Invalid, match="keep"):
        load(config, {})
