"""What a model is asked to return, as JSON schema and as the structs it is read into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lamina.knowledge import ATOM_TYPES

MAX_ATOMS = 20
MAX_QUOTES = 4
SCOPES = ("", "global", "project", "scenario")
VERBS = ("add", "supersede", "reinforce", "contradict", "none")


class Quote(Struct, frozen=True):
    """Words of the turn `source`, copied."""

    source: str
    quote: str


class Item(Struct, frozen=True, kw_only=True):
    """One atom as a model returns it: every field is to be checked."""

    type: str
    text: str
    quotes: list[Quote]
    subject: str = ""
    slot: str = ""
    value: str = ""
    entities: list[str] = []
    priority: int = 50
    scope: str = ""
    polarity: int = 0
    valid_from: str = ""
    valid_to: str = ""
    suspicious: bool = False


class Move(Struct, frozen=True, kw_only=True):
    """One operation as a model returns it."""

    atom: str
    verb: str
    target: str = ""
    reason: str = ""


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Strict mode wants every property required and none besides."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_QUOTE = _object(source=_TEXT, quote=_TEXT)
_ATOM = _object(
    quotes={"type": "array", "items": _QUOTE},  # first: the model copies before it words
    type={"type": "string", "enum": list(ATOM_TYPES)},
    text=_TEXT,
    subject=_TEXT,
    slot=_TEXT,
    value=_TEXT,
    entities={"type": "array", "items": _TEXT},
    priority={"type": "integer"},
    scope={"type": "string", "enum": list(SCOPES)},
    polarity={"type": "integer", "enum": [-1, 0, 1]},
    valid_from=_TEXT,
    valid_to=_TEXT,
    suspicious={"type": "boolean"},
)
_OPERATION = _object(atom=_TEXT, verb={"type": "string", "enum": list(VERBS)}, target=_TEXT, reason=_TEXT)
ATOMS = _object(atoms={"type": "array", "items": _ATOM})
OPERATIONS = _object(operations={"type": "array", "items": _OPERATION})
