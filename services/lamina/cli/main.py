"""Parsing, dispatch and the last net: every error becomes one line with cause and remedy, and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version
from typing import NoReturn

from lamina import log
from lamina.cli.command import FAILED, USAGE, Command, Context
from lamina.errors import Invalid, LaminaError
from lamina.home import DEFAULT_HOME, Home

GROUP = "lamina.commands"
INTERRUPTED = 130
DEFAULT_SPACE = "default"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code: 0 done, 1 failed, 2 usage, 130 interrupted."""
    log.configure(os.environ.get("LAMINA_LOG_LEVEL", "warning"))
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = _parser(_wanted(arguments))
        options = parser.parse_args(arguments)
        command: Command | None = getattr(options, "command", None)
        if command is None:
            parser.print_help()
            return USAGE
        context = Context(
            home=Home(options.home), space=options.space, json=options.json, out=sys.stdout, err=sys.stderr
        )
        return command.run(context, options)
    except LaminaError as error:
        return _failed(error, arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has enough
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was accepted is kept, the same command goes on where it stopped\n")
        return INTERRUPTED


def _failed(error: LaminaError, arguments: Sequence[str]) -> int:
    kind = type(error).__name__
    sys.stderr.write(f"lamina: {kind}: {error}\n")
    return FAILED


def _wanted(arguments: Sequence[str]) -> str | None:
    """The verb, if one is named: then only its code is loaded."""
    names = {point.name for point in verbs()}
    if any(argument in ("-h", "--help", "--version") for argument in arguments) and arguments[0] not in names:
        return None
    return next((argument for argument in arguments if argument in names), None)


@cache
def verbs() -> tuple[EntryPoint, ...]:
    """The installed verbs, by name."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: point.name))


def load(point: EntryPoint) -> Command:
    """The command behind an entry point. `Invalid` when it is none."""
    command = point.load()
    if not isinstance(command, Command) or command.name != point.name:
        raise Invalid(f"entry point {point.name} = {point.value} in {GROUP} does not give a command of that name")
    return command


class _Parser(argparse.ArgumentParser):
    """Usage errors in one line, with the way to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"lamina: {message}\nTry: {self.prog} --help\n")


def _parser(only: str | None) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="lamina",
        description="Memory for AI agents: nothing lost, everything traceable, offline.",
        epilog="Start with `lamina demo`. `lamina VERB --help` shows examples.",
    )
    parser.add_argument("--version", action="version", version=f"lamina {version('lamina')}")
    _global_options(parser, defaults=True)
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB", parser_class=_Parser)
    for point in verbs():
        if only is None or point.name == only:
            _add(subparsers, load(point))
    return parser


def _add(subparsers: argparse._SubParsersAction[_Parser], command: Command) -> None:
    examples = "\n".join(f"  {line}" for line in command.examples)
    parser = subparsers.add_parser(
        command.name,
        help=command.help,
        description=command.description or command.help,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _global_options(parser, defaults=False)
    command.configure(parser)
    parser.set_defaults(command=command)


def _global_options(parser: argparse.ArgumentParser, *, defaults: bool) -> None:
    """The options that every verb takes, before or after its name."""
    group = parser.add_argument_group("options of every verb")

    def default(value: object) -> object:
        return value if defaults else argparse.SUPPRESS

    group.add_argument(
        "--home", metavar="DIR", default=default(None), help=f"the home (LAMINA_HOME; default {DEFAULT_HOME})"
    )
    group.add_argument(
        "--space",
        metavar="NAME",
        default=default(os.environ.get("LAMINA_SPACE", DEFAULT_SPACE)),
        help=f"whose memory (LAMINA_SPACE; default {DEFAULT_SPACE!r})",
    )
    group.add_argument(
        "--json", action="store_true", default=default(False), help="JSON on stdout instead of text for people"
    )
