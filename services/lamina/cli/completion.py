"""The verb `completion`: a script that completes verbs, options and words in bash, zsh or fish.

The scripts hold the words themselves, so that pressing Tab starts no Python; they are as old as the day they were
made, and made again by the same command.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from lamina.cli.command import DONE, Command, Context
from lamina.cli.parser import GLOBAL_OPTIONS, load, verb_parser, verbs

SHELLS = ("bash", "zsh", "fish")


class Words(NamedTuple):
    """What may follow a verb: its help, its options with theirs, the words of its first argument."""

    verb: str
    help: str
    options: dict[str, str]
    choices: tuple[str, ...]


def words() -> Iterator[Words]:
    for point in verbs():
        command = load(point)
        actions = verb_parser(command)._actions
        options = {
            name: action.help or "" for action in actions for name in action.option_strings if name[:2] == "--"
        }
        first = next((action for action in actions if not action.option_strings), None)
        choices = tuple(map(str, first.choices)) if first is not None and first.choices is not None else ()
        yield Words(command.name, command.help, options, choices)


def bash() -> str:
    """A function for `complete -F`; zsh runs it through bashcompinit. Other words complete as file names."""
    shared = " ".join(names.split()[0] for names, _ in GLOBAL_OPTIONS)
    all_words = list(words())
    cases = "\n".join(
        f"    {one.verb}) set -- {_quoted(' '.join(one.options))} {_quoted(' '.join(one.choices))} ;;"
        for one in all_words
    )
    return f"""_lamina() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} verb= index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case ${{COMP_WORDS[index]}} in
      --home | --space) index=$((index + 1)) ;;
      -*) ;;
      *) verb=${{COMP_WORDS[index]}}; break ;;
    esac
  done
  case $verb in
    "") set -- {_quoted(shared + " --help --version")} {_quoted(" ".join(one.verb for one in all_words))} ;;
{cases}
    *) set -- "" "" ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$1" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$2" -- "$current"))
  fi
}}
complete -o default -F _lamina lamina
"""


def zsh() -> str:
    return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash()


def fish() -> str:
    lines = []
    for one in words():
        lines.append(f"complete -c lamina -n __fish_use_subcommand -f -a {one.verb} -d {_quoted(one.help)}")
        seen = f"-n '__fish_seen_subcommand_from {one.verb}'"
        for option, text in one.options.items():
            lines.append(f"complete -c lamina {seen} -l {option[2:]} -d {_quoted(text)}")
        if one.choices:
            lines.append(f"complete -c lamina {seen} -f -a {_quoted(' '.join(one.choices))}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """In single quotes, for all three shells."""
    return "'" + text.replace("\\", "").replace("'", "").replace("\n", " ") + "'"


def _run(context: Context, options: argparse.Namespace) -> int:
    script = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell]()
    if context.json:
        context.document({"shell": options.shell, "script": script})
    else:
        context.out.write(script)
    return DONE


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


completion = Command(
    name="completion",
    help="completion of verbs and options for a shell",
    description="Print a script that completes verbs, options and words. Make it again after an upgrade.",
    run=_run,
    configure=_options,
    examples=(
        'eval "$(lamina completion bash)"                                   # in ~/.bashrc',
        'eval "$(lamina completion zsh)"                                    # in ~/.zshrc',
        "lamina completion fish > ~/.config/fish/completions/lamina.fish",
    ),
    outputs={"completion": dict[str, str]},
)
