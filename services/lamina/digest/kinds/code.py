"""Source code of any language: definitions, imports and names before comments."""

from __future__ import annotations

import re

from lamina.digest.kinds.plan import Content, Plan, any_of, probe
from lamina.digest.symbols import DEFINITION

COMMENT = re.compile(r"(?:\*(?![\w(])|//|/\*|#(?![!\[]|include|define|if|endif|else)|--\s|<!--|\"\"\"|'''|;;)")
OPENING = any_of(
    "import from package use using require include export public private protected static final const let var def",
    "class interface enum struct trait impl fn func fun function return if else for while switch case try catch",
    "with async await raise throw yield end begin select insert create update alter echo fi done local type",
    "module namespace template typedef elif except finally set unset cd exit source then esac defer go mut where",
)
MARKS = r"@\w|#(?:include|define|!)|self\.|this\.|[})\];]|\w+\(\)\s*\{|[A-Z_]+=|\$\w"
STATEMENT = re.compile(rf"(?:{OPENING})\b|{MARKS}", re.IGNORECASE)
ENDING = re.compile(r".*(?:[;{},(\[:]|\\|=>|->|\bthen|\bdo|\bend)\s*$")
EXTENSION = re.compile(
    r"\.(?:java|kt|scala|groovy|gradle|py|pyi|rb|js|jsx|ts|tsx|mjs|go|rs|c|h|cc|cpp|hpp|cs|php|swift|sh|bash|sql|lua|pl"
    r"|r|jl|ex|exs|erl|hs|ml|clj|dart|vue|tf|proto|zig|nim|m|mm)\b"
)

COMMENT_FACTOR = 0.15  # of the plain words; a name in a comment keeps more (NAMES)
NAMES = 0.3
DEFINES = 1.6
DEPTH = 12.0  # columns; the deeper a line stands, the less it is outline


def looks(content: Content) -> bool:
    """Most lines begin or end as statements do; a source file in the arguments lowers the bar."""
    lines = [line for line in probe(content.lines.lines) if not COMMENT.match(line.body)]
    if not lines:
        return False
    if content.text.startswith("#!"):
        return True
    hits = sum(1 for line in lines if STATEMENT.match(line.body) or ENDING.match(line.body))
    need = 0.3 if content.lines.own or EXTENSION.search(content.call.arguments) else 0.55
    return len(lines) >= 3 and hits >= need * len(lines)


def plan(content: Content) -> Plan:
    """Comments count little; names stand wherever they stand."""
    factors: list[float] = []
    for line in content.lines.lines:
        if line.framing or COMMENT.match(line.body):
            factors.append(COMMENT_FACTOR)
            continue
        factors.append((DEFINES if DEFINITION.match(line.body) else 1.0) / (1.0 + line.indent / DEPTH))
    return Plan("code", factors, [], names=NAMES)
