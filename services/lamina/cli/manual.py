"""The manual page of the command line, made from the parsers: `python -m lamina.cli.manual > infra/docs/cli.md`.

Made from the verbs that this version's pyproject.toml names, so that a verb which another package adds to an
environment is not written into it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from lamina.cli.command import Command
from lamina.cli.parser import DESCRIPTION, GLOBAL_OPTIONS, Parser, grouped, load, verb_parser, verbs

HEAD = f"""# lamina: the command line

{DESCRIPTION}

```
lamina [--home DIR] [--space NAME] [--json] VERB ...
```

This page is made from the code (`python -m lamina.cli.manual`); a test fails when it is stale.

- Exit codes: 0 done (an empty answer too), 1 failed, 2 wrong usage, 130 interrupted.
- `--json` writes one document, or one line each, to stdout; words for people go to stderr. `lamina schema` describes
  every document.
- On a terminal there are tables and colour (`NO_COLOR` turns colour off); in a pipe there is plain text, lines whole.
- Nothing that is remembered can steer the terminal it is shown on: control characters become `�`.
- Configuration: flag > `LAMINA_*` > `config.toml` in the home > default; `lamina config` prints the result.
- Completion: `lamina completion bash|zsh|fish`.
"""


def manual() -> str:
    """The whole page as Markdown."""
    commands = [load(point) for point in verbs() if point.value.startswith("lamina.")]
    return "\n".join([HEAD, *_summary(commands), *_options_of_all(), *_pages(commands)]).rstrip() + "\n"


def _summary(commands: list[Command]) -> Iterator[str]:
    yield "## Verbs"
    for title, members in grouped(commands):
        yield ""
        yield f"**{title}**"
        yield ""
        for command in members:
            yield f"- [`{command.name}`](#lamina-{command.name}): {command.help}"
    yield ""


def _options_of_all() -> Iterator[str]:
    yield "## Options of every verb"
    yield ""
    for names, text in GLOBAL_OPTIONS:
        yield f"- `{names}`: {text}"
    yield ""


def _pages(commands: list[Command]) -> Iterator[str]:
    for _, members in grouped(commands):
        for command in members:
            yield from _page(command, verb_parser(command))


def _page(command: Command, parser: Parser) -> Iterator[str]:
    yield f"## lamina {command.name}"
    yield ""
    yield command.description or command.help[0].upper() + command.help[1:] + "."
    yield ""
    own = list(actions(parser))
    yield "```"
    yield " ".join([f"lamina {command.name}", *(_synopsis(action) for action in own)])
    yield "```"
    yield ""
    for action in own:
        yield f"- `{_names(action)}`: {text_of(action)}"
    if own:
        yield ""
    if command.examples:
        yield "Examples:"
        yield ""
        yield "```sh"
        yield from command.examples
        yield "```"
        yield ""
    if command.outputs:
        names = ", ".join(f"`lamina schema {words}`" for words in command.outputs)
        yield f"`--json` writes: {names}."
        yield ""


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """What a verb takes of its own: arguments first, then options."""
    shared = {names.split()[0] for names, _ in GLOBAL_OPTIONS} | {"--help"}
    own = [action for action in parser._actions if not shared.intersection(action.option_strings)]
    yield from sorted(own, key=lambda action: bool(action.option_strings))


def text_of(action: argparse.Action) -> str:
    """The help of an argument, its default filled in."""
    return (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return action.dest.upper().replace("_", "-")


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return _metavar(action)
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(f"{name}{value}" for name in action.option_strings)


def _synopsis(action: argparse.Action) -> str:
    if action.option_strings:
        inner = action.option_strings[-1] + ("" if action.nargs == 0 else f" {_metavar(action)}")
        return inner if action.required else f"[{inner}]"
    word = _metavar(action)
    return {"*": f"[{word} ...]", "+": f"{word} [{word} ...]", "?": f"[{word}]"}.get(str(action.nargs), word)


if __name__ == "__main__":
    sys.stdout.write(manual())
