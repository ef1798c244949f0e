"""`lamina import` as a person uses it: real processes, a real log, interrupted and begun again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "import"
LAMINA = [sys.executable, "-m", "lamina.cli"]

pytestmark = pytest.mark.skipif(
    "import" not in entry_points(group="lamina.commands").names, reason="this installation has no verb `import`"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    yield folder
    subprocess.run([*LAMINA, "--home", str(folder), "down"], check=False, capture_output=True, timeout=60)


def lamina(home: Path, *arguments: str, code: int = 0, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [*LAMINA, "--home", str(home), *arguments], input=stdin, capture_output=True, timeout=110, check=False
    )
    assert done.returncode == code, done.stderr.decode()
    return done


def imported(done: subprocess.CompletedProcess[bytes]) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_transcript_is_imported_recalled_and_imported_again(home: Path) -> None:
    log = str(FIXTURES / "claude_code.jsonl")

    first = imported(lamina(home, "import", log, "--space", "a", "--wait", "l0", "--json"))
    found = json.loads(lamina(home, "recall", "order service database", "--space", "a", "--json").stdout)
    again = imported(lamina(home, "import", log, "--space", "a", "--wait", "l0", "--json"))

    assert [(row["format"], row["turns"], row["calls"], row["known"]) for row in first] == [("claude-code", 9, 2, 0)]
    assert found["status"] == "found"
    assert "u-0002" in [id for item in found["items"] for id in item["turn_ids"]]
    assert [(row["turns"], row["calls"], row["known"]) for row in again] == [(0, 0, 11)]


def test_several_files_and_standard_input(home: Path) -> None:
    files = [str(FIXTURES / name) for name in ("locomo.json", "beam.jsonl")]
    stdin = (FIXTURES / "sharegpt.jsonl").read_bytes()

    rows = imported(lamina(home, "import", *files, "-", "--space", "b", "--wait", "l0", "--json", stdin=stdin))

    assert [(row["format"], row["turns"]) for row in rows] == [("locomo", 4), ("beam", 4), ("jsonl", 4)]


def test_a_bad_record_stops_and_is_left_out_on_request(home: Path) -> None:
    log = str(FIXTURES / "plain_bad.jsonl")

    stopped = lamina(home, "import", log, "--space", "c", "--wait", "l0", code=1)
    skipped = imported(lamina(home, "import", log, "--space", "c", "--wait", "l0", "--skip-bad", "--json"))

    assert b"plain_bad.jsonl:3" in stopped.stderr
    assert b"--skip-bad" in stopped.stderr
    assert [(row["turns"], row["known"], row["bad"]) for row in skipped] == [(1, 1, 9)]


def test_what_is_no_log_is_refused_with_a_reason(home: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')

    assert b"no known format" in lamina(home, "import", str(tmp_path / "x.json"), code=1).stderr
    assert b"cannot be opened" in lamina(home, "import", str(tmp_path / "none"), code=1).stderr
    lamina(home, "import", str(tmp_path / "x.json"), "--format", "word", code=2)


def test_ctrl_c_and_the_same_command_again_end_in_the_same_state(home: Path, tmp_path: Path) -> None:
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_text('{"role": "user", "text": "one"}\n')
    large.write_text("".join(f'{{"role": "user", "text": "turn number {n}"}}\n' for n in range(6000)))
    command = ["import", str(small), str(large), "--space", "d", "--wait", "l0", "--json"]

    with subprocess.Popen(
        [*LAMINA, "--home", str(home), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline(), "the first file is done, the second has begun"
        running.send_signal(signal.SIGINT)
        rest, told = running.stdout.read(), running.stderr.read()
        code = running.wait(timeout=60)
    again = imported(lamina(home, *command))
    third = imported(lamina(home, *command))

    assert (code, rest) == (130, b""), told.decode()
    assert b"Traceback" not in told
    assert int(str(again[1]["turns"])) + int(str(again[1]["known"])) == 6000
    assert [(row["turns"], row["known"]) for row in third] == [(0, 1), (0, 6000)]
