"""Source code of any language: definitions, imports and names before comments."""

from __future__ import annotations

import re

from lamina.digest.kinds.plan import Content, Plan, probe
from lamina.digest.symbols import DEFINITION

COMMENT = re.compile(r"(?:\*(?![\w(])|//|/\*|#(?![!\[]|include|define|if|endif|else)|--\s|<!--|\"\"\"|'''|;;)")
STATEMENT = re.compile(
    r"(?:import|from|package|use|using|require|include|export|public|private|protected|static|final|const|let|var|def"
    r"|class|interface|enum|struct|trait|impl|fn|func|fun|function|return|if|else|for|while|switch|case|try|catch|with"
    r"|async|await|raise|throw|yield|end|begin|select|insert|create|update|alter|@\w+|#include|#define|echo|fi|done"
    r"|local|type|module|namespace|template|typedef|elif|except|finally|self\.|this\.|[})\];]+)(?:\b|\W|$)",
    re.IGNORECASE,
)
ENDING = re.compile(r".*(?:[;{},(\[:]|\\|=>|->|\bthen|\bdo|\bend)\s*$")
EXTENSION = re.compile(
    r"\.(?:java|kt|scala|groovy|gradle|py|pyi|rb|js|jsx|ts|tsx|mjs|go|rs|c|h|cc|cpp|hpp|cs|php|swift|sh|bash|sql|lua|pl"
    r"|r|jl|ex|exs|erl|hs|ml|clj|dart|vue|tf|proto|zig|nim|m|mm)\b"
)


def looks(content: Content) -> bool:
    """Most lines begin or end as statements do; a source file in the arguments lowers the bar."""
    lines = [line for line in probe(content.lines.lines) if not COMMENT.match(line.body)]
    if not lines:
        return False
    hits = sum(1 for line in lines if STATEMENT.match(line.body) or ENDING.match(line.body))
    need = 0.3 if content.lines.own or EXTENSION.search(content.call.arguments) else 0.55
    return len(lines) >= 3 and hits >= need * len(lines)


def plan(content: Content) -> Plan:
    """Comments count little; names stand wherever they stand."""
    factors: list[float] = []
    definitions = 0
    for line in content.lines.lines:
        if COMMENT.match(line.body):
            factors.append(COMMENT_FACTOR)
            continue
        definitions += bool(DEFINITION.match(line.body))
        factors.append(1.0)
    label = f"code, {definitions} definitions" if definitions else "code"
    return Plan(label, factors, [])


COMMENT_FACTOR = 0.15
