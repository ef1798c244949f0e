"""What holds for every verb: help that teaches, JSON that is described, a manual that is not stale, late imports."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lamina.cli import completion, manual, schemas
from lamina.cli.command import Command
from lamina.cli.parser import load, overview, verb_parser, verbs

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "infra" / "docs" / "cli.md"
OWN = [load(point) for point in verbs() if point.value.startswith("lamina.")]
NAMED = re.compile(r"`lamina ([a-z]+)")
SLOW = ("aiosqlite", "asyncio", "nats", "numpy", "rich", "sqlite3", "structlog")


def name(command: Command) -> str:
    return command.name


@pytest.mark.parametrize("command", OWN, ids=name)
def test_verb_teaches_by_example(command: Command) -> None:
    assert command.help
    assert not command.help.endswith(".")
    assert [line for line in command.examples if command.name in line], "examples show the verb at work"


@pytest.mark.parametrize("command", OWN, ids=name)
def test_every_argument_is_explained(command: Command) -> None:
    assert [action.dest for action in manual.actions(verb_parser(command)) if not manual.text_of(action)] == []


@pytest.mark.parametrize("command", OWN, ids=name)
def test_every_json_document_has_a_schema(command: Command) -> None:
    assert command.outputs, "a verb names the type of what --json writes: `outputs` of its Command"
    for words, kind in command.outputs.items():
        assert words.split()[0] == command.name
        assert schemas.schema_of(words, kind)["title"] == words


@pytest.mark.parametrize("command", OWN, ids=name)
def test_verb_is_in_the_manual(command: Command) -> None:
    assert f"\n## lamina {command.name}\n" in MANUAL.read_text(encoding="utf-8")


def test_manual_is_not_stale() -> None:
    made = manual.manual()

    assert MANUAL.read_text(encoding="utf-8") == made, "python -m lamina.cli.manual > infra/docs/cli.md"


def test_overview_lists_every_verb() -> None:
    lines = overview(OWN).splitlines()

    assert {line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in map(name, OWN)} == {
        *map(name, OWN)
    }


def test_every_verb_that_a_message_names_is_there() -> None:
    sources = [file for tree in ("services", "schemas", "infra", "replay") for file in (ROOT / tree).rglob("*.py")]
    named = {verb: file for file in sources for verb in NAMED.findall(file.read_text(encoding="utf-8"))}

    assert len(named) > 5, "the pattern finds them"
    assert {verb: file for verb, file in named.items() if verb not in map(name, OWN)} == {}


def test_every_schema_is_json() -> None:
    for words, (_, kind) in schemas.known().items():
        assert msgspec.json.decode(msgspec.json.encode(schemas.schema_of(words, kind)))["title"] == words


def test_help_loads_nothing_slow() -> None:
    """`lamina --help` loads every verb's module; what a verb needs to run it imports when it runs."""
    code = (
        "import sys\n"
        "from lamina.cli.main import main\n"
        "main(['--help'])\n"
        f"print('loaded', *[name for name in {SLOW!r} if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert run.stdout.splitlines()[-1] == "loaded"


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (("lamina", "stat"), {"status"}),
        (("lamina", "--home", "/x", "reca"), {"recall"}),
        (("lamina", "show", "se"), {"sessions"}),
        (("lamina", "recall", "--li"), {"--limit"}),
        (("lamina", "--ver"), {"--version"}),
        (("lamina", "recall", "x"), set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bash_completes(line: tuple[str, ...], words: set[str]) -> None:
    asked = f'COMP_WORDS=({" ".join(line)}); COMP_CWORD={len(line) - 1}; _lamina; echo "${{COMPREPLY[@]}}"'
    run = subprocess.run(
        [str(BASH), "-c", completion.bash() + asked], capture_output=True, text=True, check=True, timeout=30
    )

    assert set(run.stdout.split()) == words


@pytest.mark.parametrize("script", [completion.bash, completion.zsh, completion.fish])
def test_completion_knows_every_verb_and_option(script: Callable[[], str]) -> None:
    text = script()

    assert [command.name for command in OWN if command.name not in text] == []
    assert "budget-tokens" in text
