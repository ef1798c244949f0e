"""The replay verbs where there is nothing to do, or what is asked for makes no sense: nothing is started."""

from __future__ import annotations

import argparse
import io
import json

import pytest

from lamina.cli.command import Context
from lamina.cli.main import main
from lamina.dead.commands import dead
from lamina.export.commands import export, restore
from lamina.home import Home
from lamina.replay.commands import replay


def run(home: Home, *arguments: str) -> int:
    return main(["--home", str(home.path), *arguments])


@pytest.mark.parametrize("action", ["rebuild", "verify"])
def test_an_empty_home_is_whole(home: Home, capsys: pytest.CaptureFixture[str], action: str) -> None:
    assert run(home, "replay", action) == 0
    assert home.runtime() is None

    assert "no space yet" in (said := capsys.readouterr().out) or "nothing differs" in said


def test_json_of_an_empty_home(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, "replay", "verify", "--json") == 0

    assert json.loads(capsys.readouterr().out) == {"findings": [], "spaces": 0, "events": 0, "seconds": 0.0}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["replay", "rebuild", "moon"], "there is no view 'moon'"),
        (["replay", "rebuild", "--space", "bob"], "there is no space 'bob'"),
        (["replay", "verify", "journal"], "takes no view"),
        (["replay", "trim"], "how much of the log is to stay"),
        (["replay", "trim", "--keep", "2 cups"], "bus.keep must be"),
        (["dead", "drop", "x"], "needs a reason"),
        (["dead", "retry"], "name what to settle"),
        (["export", "a.tar", "--space", "bob"], "there is no space 'bob'"),
        (["export", "-"], "only jsonl and markdown"),
        (["export", "out", "--all", "--format", "jsonl"], "--all writes an archive of every space"),
        (["restore", "."], "holds no archives"),
    ],
)
def test_what_makes_no_sense_is_said(
    home: Home, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    (home.spaces / "alice").mkdir()

    assert run(home, *arguments) == 1

    assert says in capsys.readouterr().err
    assert home.runtime() is None


@pytest.mark.parametrize(("given", "named"), [([], False), (["--space", "default"], True)])
def test_a_verb_knows_whether_a_space_was_named(
    home: Home, monkeypatch: pytest.MonkeyPatch, given: list[str], *, named: bool
) -> None:
    """Verbs that look after things mean every space where none is named, also by its default name."""
    seen: list[Context] = []

    def look(context: Context, _: argparse.Namespace) -> int:
        seen.append(context)
        return 0

    monkeypatch.setattr("lamina.cli.main.load", lambda _: type(dead)(name="dead", help="looks", run=look))
    run(home, *given, "dead")
    monkeypatch.setenv("LAMINA_SPACE", "mine")
    run(home, "dead")

    assert [(one.space, one.named) for one in seen] == [("default", named), ("mine", True)]


def test_nothing_parked_is_said(home: Home) -> None:
    out = io.StringIO()
    context = Context(home=home, space="alice", json=False, out=out, err=out, named=False)

    assert dead.run(context, argparse.Namespace(action="list", id=[], kind=None, service=None)) == 0
    assert out.getvalue() == "nothing is parked\n"
    assert {replay.name, export.name, restore.name} == {"replay", "export", "restore"}
