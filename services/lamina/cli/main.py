"""Dispatch and the last net: every error becomes one line with cause and remedy, and an exit code."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence

from lamina.cli.command import DONE, FAILED, USAGE, Command, Context
from lamina.cli.output import printable
from lamina.cli.parser import DEFAULT_SPACE, Parser, defaults, head_parser, load, meant, overview, verb_parser, verbs
from lamina.errors import Invalid, LaminaError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code: 0 done, 1 failed, 2 usage, 130 interrupted."""
    gc.set_threshold(50_000, 20, 20)  # imports make objects, not garbage: looking for it was a tenth of a start
    _prepare_streams()
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except LaminaError as error:
        return _failed(f"{type(error).__name__}: {error}")
    except ExceptionGroup as group:
        ours, others = group.split(LaminaError)
        if ours is None or others is not None:
            raise
        return _failed("; ".join(f"{type(error).__name__}: {error}" for error in _leaves(ours)))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has enough
        return FAILED
    except OSError as error:
        return _failed(
            f"{error.filename or 'the system'}: {error.strerror or error}; `lamina doctor` looks for the cause"
        )
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was accepted is kept, the same command goes on where it stopped\n")
        return INTERRUPTED
    return code


def _run(arguments: list[str]) -> int:
    head = head_parser()
    before, verb, after = _split(arguments)
    if verb == "help":
        before, verb, after = (before, after[0], ["--help"]) if after else ([*before, "--help"], None, [])
    options, unknown = head.parse_known_args(before, defaults())
    if unknown:
        head.unknown(unknown)
    if options.help or verb is None:
        sys.stdout.write(overview(list(_loadable())) + "\n")
        return DONE if options.help else USAGE
    known = {point.name: point for point in verbs()}
    if verb not in known:
        head.error(f"unknown verb {printable(verb)!r}{meant(verb, known)}")
    command = load(known[verb])
    return _run_verb(command, verb_parser(command), after, options)


def _loadable() -> Iterator[Command]:
    """The verbs; one whose package is broken is told of, and takes none of the others away."""
    for point in verbs():
        try:
            yield load(point)
        except Invalid as error:
            _failed(str(error))


def _run_verb(command: Command, parser: Parser, after: list[str], options: argparse.Namespace) -> int:
    chosen, unknown = parser.parse_known_args(after, options)
    if unknown:
        parser.unknown(unknown)

    from lamina import log  # what the list of verbs does not need
    from lamina.home import Home

    level = os.environ.get("LAMINA_LOG_LEVEL", "warning")
    if level not in log.LEVELS:
        raise Invalid(f"LAMINA_LOG_LEVEL must be one of {', '.join(log.LEVELS)}, not {level!r}")
    log.configure(level)
    named = chosen.space is not None
    space = chosen.space if named else DEFAULT_SPACE
    out, err = sys.stdout, sys.stderr
    context = Context(home=Home(chosen.home), space=space, named=named, json=chosen.json, out=out, err=err)
    return command.run(context, chosen)


def _split(arguments: list[str]) -> tuple[list[str], str | None, list[str]]:
    """What stands before the verb, the verb, and what stands after it."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 2 if arguments[index] in ("--home", "--space") else 1
    if index >= len(arguments):
        return arguments, None, []
    return arguments[:index], arguments[index], arguments[index + 1 :]


def _leaves(group: BaseExceptionGroup[LaminaError]) -> Iterator[LaminaError]:
    """What tasks that ran beside one another raised."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _failed(message: str) -> int:
    sys.stderr.write(f"lamina: {printable(message)}\n")
    return FAILED


def _prepare_streams() -> None:
    """JSON is UTF-8 whatever the locale; a character that a terminal cannot show never ends a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
