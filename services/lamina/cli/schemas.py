"""The verb `schema`: JSON Schema of the event envelope, of every event type and of every JSON output."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec
from msgspec import Struct

from lamina.cli.command import DONE, Command, Context
from lamina.cli.output import Column
from lamina.cli.parser import load, meant, verbs
from lamina.errors import Invalid

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ENVELOPE = "event"


class Entry(Struct, frozen=True):
    """A schema that there is. `kind`: envelope, event (its data) or output (of a verb with `--json`)."""

    name: str
    kind: str
    about: str


def known() -> dict[str, tuple[Entry, Any]]:
    """Name -> (entry, type) of everything that has a schema."""
    from lamina import events

    found: dict[str, tuple[Entry, Any]] = {
        ENVELOPE: (Entry(ENVELOPE, "envelope", _about(events.Event)), events.Event)
    }
    for name, kind in events.TYPES.items():
        found[name] = (Entry(name, "event", _about(kind)), kind)
    for point in verbs():
        command = load(point)
        for words, kind in command.outputs.items():
            found[words] = (Entry(words, "output", f"`lamina {words} --json`"), kind)
    return found


def _about(kind: type[Any]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def schema_of(name: str, kind: Any) -> dict[str, Any]:
    """The JSON Schema document of a type."""
    return {"$schema": DIALECT, "title": name, **msgspec.json.schema(kind)}


def _run(context: Context, options: argparse.Namespace) -> int:
    schemas = known()
    if options.name:
        _one(context, " ".join(options.name), schemas)
    elif context.json:
        context.document({name: schema_of(name, kind) for name, (_, kind) in schemas.items()})
    else:
        rows = [(entry.name, entry.kind, entry.about) for entry, _ in schemas.values()]
        context.printer.table((Column("name"), Column("what"), Column("about")), rows)
    return DONE


def _one(context: Context, name: str, schemas: dict[str, tuple[Entry, Any]]) -> None:
    if name not in schemas:
        raise Invalid(f"there is no schema {name!r}{meant(name, schemas)}; `lamina schema` lists them")
    document = schema_of(name, schemas[name][1])
    if context.json:
        context.document(document)
    else:
        context.line(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="*", help="what to describe; without it the names are listed")


schema = Command(
    name="schema",
    help="describe events and every --json output as JSON Schema",
    description="Describe what stands in the log and what `--json` writes, as JSON Schema. Fields may be added "
    "within a version; readers ignore what they do not know.",
    run=_run,
    configure=_options,
    examples=(
        "lamina schema                  # the names",
        "lamina schema event            # the envelope of every event",
        "lamina schema turn.recorded    # the data of one type",
        "lamina schema show sessions    # what `lamina show sessions --json` writes",
        "lamina schema --json           # all of them, one document",
    ),
    outputs={"schema": dict[str, Any]},
)
