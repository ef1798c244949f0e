"""What every test may count on: it never touches the home of whoever runs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from lamina.home import Home
from tests.support.bench import Bench

# A loaded machine must not fail a slow example, and a failure is to be repeatable from its report.
settings.register_profile("lamina", deadline=None, print_blob=True)
settings.load_profile("lamina")

KEPT = {"LAMINA_FAULTS", "LAMINA_FAULTS_RESULT"}


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """LAMINA_HOME is an empty folder of this run; no other setting of the caller's reaches a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("LAMINA_") and name not in KEPT]:
            patch.delenv(name)
        patch.setenv("LAMINA_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("LAMINA_EMBEDDING_PROVIDER", "none")  # no model but where a test is about it
        yield


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home of this test's own, with its folders."""
    made = Home(tmp_path / "home")
    made.prepare()
    return made


@pytest.fixture
def bench(home: Home) -> Bench:
    return Bench(home)
