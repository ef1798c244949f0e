"""Help, usage errors and the last net, without a process of their own."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from lamina.cli import main as main_module
from lamina.cli.command import Command, Context
from lamina.cli.main import main
from lamina.cli.parser import load, verbs
from lamina.errors import Conflict, Invalid, Unavailable

OWN = [load(point) for point in verbs() if point.value.startswith("lamina.")]


def exit_code(*arguments: str) -> int:
    """What the process would end with: argparse leaves by SystemExit."""
    try:
        return main(arguments)
    except SystemExit as leaving:
        return int(leaving.code or 0)


@pytest.fixture(autouse=True)
def _process_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`main` sets up its process; this one is not its own."""
    monkeypatch.setattr("lamina.log.configure", lambda level: None)
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("command", OWN, ids=lambda command: command.name)
def test_help_shows_examples(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(command.name, "--help") == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: lamina " + command.name)
    assert f"examples:\n  {command.examples[0]}" in text


def test_help_may_be_asked_for_as_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    for spoken, written in ((["help"], ["--help"]), (["help", "recall"], ["recall", "--help"])):
        assert exit_code(*spoken) == 0
        said = capsys.readouterr().out
        assert exit_code(*written) == 0
        assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("recal", "x"), ("unknown verb 'recal'", "did you mean 'recall'")),
        (("nothing-like-it",), ("unknown verb", "lamina --help")),
        (("recall", "x", "--limt", "3"), ("unknown option '--limt'", "'--limit'", "lamina recall --help")),
        (("--hom", "x", "status"), ("unknown option '--hom'", "'--home'")),
        (("recall", "two", "words"), ("unexpected argument 'words'", "quotes")),
        (("recall",), ("QUERY",)),
        (("recall", "x", "--limit", "many"), ("--limit", "many")),
        (("show", "everything"), ("everything", "sessions")),
        (("show", "log", "--limit", "0"), ("--limit", "above 0")),
        (("read", "n1", "--lines", "3", "--query", "x"), ("--query", "--lines")),
        (("worker", "nobody"), ("nobody", "journal")),
        (("completion", "tcsh"), ("tcsh", "bash")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_usage_is_two_and_says_what_was_meant(
    arguments: tuple[str, ...], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [word for word in words if word not in shown.err] == [], shown.err


class Raises:
    """A verb that fails."""

    def __init__(self, error: BaseException) -> None:
        self._command = Command(name="fails", help="fail", run=self.run)
        self._error = error
        self.name = "fails"
        self.value = "tests:fails"

    def load(self) -> Command:
        return self._command

    def run(self, context: Context, options: argparse.Namespace) -> int:
        raise self._error


GROUP = ExceptionGroup("tasks", [ExceptionGroup("inner", [Conflict("one has it")]), Unavailable("no server")])


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Invalid("wrong \x1b[2J"), 1, "lamina: Invalid: wrong �[2J\n"),
        (GROUP, 1, "lamina: Conflict: one has it; Unavailable: no server\n"),
        (
            PermissionError(13, "Permission denied", "/somewhere"),
            1,
            "lamina: /somewhere: Permission denied; `lamina doctor`",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_every_failure_is_one_line(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(main_module, "verbs", lambda: (Raises(error),))

    assert exit_code("fails") == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(said)
    assert shown.err.count("\n") == 1


def test_a_mistake_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module, "verbs", lambda: (Raises(ExceptionGroup("tasks", [ZeroDivisionError()])),))

    with pytest.raises(ExceptionGroup):
        main(["fails"])


@pytest.mark.parametrize(
    ("arguments", "space"),
    [
        (("--space", "show", "status", "--json"), "show"),
        (("status", "--space", "b"), "b"),
        (("--space", "a", "status", "--space", "b"), "b"),
        (("--space=a", "status"), "a"),
        (("status",), "from the environment"),
    ],
    ids=" ".join,
)
def test_options_of_every_verb_stand_before_or_after_it(
    arguments: tuple[str, ...], space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def run(context: Context, options: argparse.Namespace) -> int:
        seen.append(context.space)
        return 0

    spy = Raises(AssertionError())
    monkeypatch.setattr(spy, "name", "status")
    monkeypatch.setattr(spy, "_command", Command(name="status", help="spy", run=run))
    monkeypatch.setattr(main_module, "verbs", lambda: (spy,))
    monkeypatch.setenv("LAMINA_SPACE", "from the environment")

    assert main(arguments) == 0
    assert seen == [space]


def test_broken_verb_takes_no_other_away(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    broken = EntryPoint("broken", "no_such_package:verb", "lamina.commands")
    monkeypatch.setattr(main_module, "verbs", lambda: (broken, *verbs()))

    assert main_module.main(["--help"]) == 0
    shown = capsys.readouterr()
    assert "\n  recall " in shown.out
    assert "'broken'" in shown.err
    assert main_module.main(["broken"]) == 1
    assert "no_such_package" in capsys.readouterr().err
