"""From verbs to parsers: the options of every verb, help that shows examples, errors that name what was meant."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from typing import NoReturn

from lamina.cli.command import USAGE, Command
from lamina.errors import Invalid

GROUP = "lamina.commands"
DEFAULT_HOME = "~/.lamina"
DEFAULT_SPACE = "default"
DESCRIPTION = "Memory for AI agents: nothing lost, everything traceable, offline."
EPILOG = "`lamina VERB --help` shows examples; `lamina demo` shows what it is."
GROUPS = (
    ("start and stop", ("demo", "up", "down", "worker", "scale", "serve", "mcp", "hook", "connect")),
    ("remember", ("import", "remember", "correct", "undo", "forget")),
    ("look", ("recall", "show", "why", "read")),
    ("look after", ("status", "top", "doctor", "config", "dead", "replay", "export", "restore", "bench")),
)
"""Where a verb stands in the list; a verb that is not named stands under the last title."""
LAST_GROUP = "more"


@cache
def verbs() -> tuple[EntryPoint, ...]:
    """The installed verbs, by name."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: point.name))


def load(point: EntryPoint) -> Command:
    """The command behind an entry point. `Invalid` when it is none, or when its package is broken."""
    try:
        command = point.load()
    except (ImportError, AttributeError) as error:
        raise Invalid(f"the verb {point.name!r} ({point.value}) cannot be loaded: {error}") from error
    if not isinstance(command, Command) or command.name != point.name:
        raise Invalid(f"entry point {point.name} = {point.value} in {GROUP} does not give a command of that name")
    return command


class Parser(argparse.ArgumentParser):
    """Usage errors in one line, with what may have been meant and the way to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"lamina: {message}\nTry: {self.prog} --help\n")

    def unknown(self, arguments: Sequence[str]) -> NoReturn:
        """Refuse arguments that nothing takes."""
        first = arguments[0]
        if not first.startswith("-"):
            self.error(f"unexpected argument {first!r}; a text of several words goes into quotes")
        known = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        self.error(f"unknown option {first.split('=')[0]!r}{meant(first.split('=')[0], known)}")


def meant(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` where something near is known."""
    near = difflib.get_close_matches(word, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""


def verb_parser(command: Command) -> Parser:
    """The parser of one verb, with the options of every verb."""
    examples = "\n".join(f"  {line}" for line in command.examples)
    parser = Parser(
        prog=f"lamina {command.name}",
        description=command.description or command.help,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.description = "\n".join(_filled(parser.description or ""))
    command.configure(parser)
    _global_options(parser)
    return parser


def _filled(text: str) -> Iterator[str]:
    import textwrap

    for paragraph in text.split("\n\n"):
        yield from textwrap.wrap(paragraph, 78)


def head_parser() -> Parser:
    """The parser of what stands before the verb."""
    parser = Parser(prog="lamina", add_help=False, allow_abbrev=False)
    _global_options(parser)
    parser.add_argument("-h", "--help", action="store_true", help="show this list")
    parser.add_argument("--version", action="version", version=f"lamina {version('lamina')}")
    return parser


def overview(commands: Sequence[Command]) -> str:
    """What `lamina --help` shows: the verbs by what they are for, and the options of every verb."""
    lines = ["usage: lamina [--home DIR] [--space NAME] [--json] VERB ...", "", DESCRIPTION]
    for title, members in grouped(commands):
        lines += ["", f"{title}:", *(f"  {command.name:<12}{command.help}" for command in members)]
    lines += ["", "options of every verb:"]
    for names, text in GLOBAL_OPTIONS:
        lines.append(f"  {names:<14}{text}")
    return "\n".join([*lines, "", EPILOG])


def grouped(commands: Sequence[Command]) -> list[tuple[str, list[Command]]]:
    """The verbs under their titles; no title without one."""
    left = {command.name: command for command in commands}
    found = [(title, [left.pop(name) for name in names if name in left]) for title, names in GROUPS]
    return [(title, members) for title, members in [*found, (LAST_GROUP, list(left.values()))] if members]


GLOBAL_OPTIONS = (
    ("--home DIR", f"the home, where everything lies (LAMINA_HOME; default {DEFAULT_HOME})"),
    ("--space NAME", f"whose memory (LAMINA_SPACE; default {DEFAULT_SPACE!r})"),
    ("--json", "JSON on stdout instead of text for people (`lamina schema` describes it)"),
)


def _global_options(parser: argparse.ArgumentParser) -> None:
    """The options that every verb takes, before or after its name: what is not given leaves no attribute."""
    group = parser.add_argument_group("options of every verb")
    for names, text in GLOBAL_OPTIONS:
        name, _, metavar = names.partition(" ")
        if metavar:
            group.add_argument(name, metavar=metavar, default=argparse.SUPPRESS, help=text)
        else:
            group.add_argument(name, action="store_true", default=argparse.SUPPRESS, help=text)


def defaults() -> argparse.Namespace:
    """The options of every verb where none is given."""
    return argparse.Namespace(home=None, space=os.environ.get("LAMINA_SPACE"), json=False)
