"""Logging: nothing is loaded before the first word, levels hold, what is written is JSON without text of users."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import sys
from lamina import log
word = log.get_logger()
word.debug("not_said", id=1)
assert "structlog" not in sys.modules
log.configure("info")
word.debug("not_said")
word.info("said", id="e1", size=3)
try:
    raise ValueError("broken")
except ValueError:
    word.exception("failed", id="e2")
log.configure("error")
word.warning("not_said")
"""


def test_levels_json_and_lateness() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    said, failed = (json.loads(line) for line in done.stderr.splitlines())

    assert (said["event"], said["level"], said["id"], said["size"]) == ("said", "info", "e1", 3)
    assert (failed["event"], failed["level"]) == ("failed", "error")
    assert "ValueError: broken" in failed["exception"]
    assert done.stdout == ""
