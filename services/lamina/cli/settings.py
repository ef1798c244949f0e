"""The verb `config`: what is configured, and where each value comes from."""

from __future__ import annotations

import argparse
import ast
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from lamina.cli.command import DONE, Command, Context
from lamina.cli.parser import DEFAULT_HOME


class Value(Struct, frozen=True, kw_only=True):
    """`source`: the variable's name, `config.toml`, or `default`."""

    value: Any
    source: str
    variable: str
    help: str = ""


class Settings(Struct, frozen=True, kw_only=True):
    """Every key of config.toml as `section.key`."""

    home: str
    home_source: str
    file: str
    file_exists: bool
    values: dict[str, Value]


def resolve(context: Context, *, home_given: bool) -> Settings:
    """The configuration of a home and its sources; raises what `lamina.config.load` raises."""
    import tomllib

    from lamina import config

    path = context.home.config
    loaded = config.load(path)
    raw = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    values = {}
    for section in loaded.__struct_fields__:
        table = getattr(loaded, section)
        for key in table.__struct_fields__:
            variable = f"LAMINA_{section}_{key}".upper()
            source = variable if variable in os.environ else "default"
            if source == "default" and key in raw.get(section, {}):
                source = "config.toml"
            values[f"{section}.{key}"] = Value(
                value=msgspec.to_builtins(getattr(table, key)),
                source=source,
                variable=variable,
                help=_documented().get((type(table).__name__, key), ""),
            )
    home_source = "--home" if home_given else ("LAMINA_HOME" if "LAMINA_HOME" in os.environ else "default")
    return Settings(
        home=str(context.home.path), home_source=home_source, file=str(path), file_exists=path.exists(), values=values
    )


@cache
def _documented() -> dict[tuple[str, str], str]:
    """(struct, key) -> the text that stands below the key in `lamina.config`, which no reflection gives."""
    from lamina import config

    tree = ast.parse(Path(config.__file__).read_text(encoding="utf-8"))
    found = {}
    for struct in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, text in zip(struct.body, struct.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[struct.name, ast.unparse(field.target)] = str(text.value.value)
    return found


def _run(context: Context, options: argparse.Namespace) -> int:
    settings = resolve(context, home_given=options.home is not None)
    if context.json:
        context.document(settings)
        return DONE
    printer = context.printer
    missing = "" if settings.file_exists else " (not there: all of it is optional)"
    printer.line(f"# home: {settings.home} ({settings.home_source}; default {DEFAULT_HOME})", "dim")
    printer.line(f"# file: {settings.file}{missing}", "dim")
    printer.line("# flag > LAMINA_* > config.toml > default", "dim")
    section = ""
    for name, value in settings.values.items():
        table, _, key = name.partition(".")
        if table != section:
            printer.line()
            printer.line(f"[{table}]", "bold")
            section = table
        if value.help:
            printer.line(f"# {value.help}", "dim")
        origin = f"default; {value.variable} sets it" if value.source == "default" else f"from {value.source}"
        text = f"{key} = {_toml(value.value)}"
        printer.parts((f"{text:<40}", "" if value.source == "default" else "bold green"), (f"  # {origin}", "dim"))
    return DONE


def _toml(value: Any) -> str:
    """A TOML value: JSON has the same form for text, numbers, booleans and lists of them."""
    return json.dumps(value, ensure_ascii=False)


config = Command(
    name="config",
    help="what is configured, and where each value comes from",
    description="Print the configuration as TOML, each value with its source. The output is a valid config.toml: "
    "unknown keys are refused everywhere, so begin with it.",
    run=_run,
    examples=(
        "lamina config                          # every key with its value and its source",
        "lamina config > ~/.lamina/config.toml  # a file to begin with",
        "LAMINA_DAEMON_LOG_LEVEL=debug lamina config --json",
    ),
    outputs={"config": Settings},
)
