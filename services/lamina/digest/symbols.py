"""Definitions in source code, told by their lines alone: no grammar, so every language and every cut view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_MODIFIERS = (
    r"(?:@[\w.]+(?:\([^()]*\))?\s+)*"
    r"(?:(?:export|default|pub(?:\([^()]*\))?|public|private|protected|internal|static|final|abstract|async|sealed|open"
    r"|override|virtual|inline|extern|unsafe|const|native|synchronized|partial|data|case|declare|readonly)\s+)*"
)
_KEYWORDS = (
    r"(?:class|interface|enum|struct|trait|impl|record|module|namespace|object|protocol|extension|type|typedef|union|def"
    r"|fn|func|fun|function|sub|proc|procedure|macro_rules!|#define"
    r"|create\s+(?:or\s+replace\s+)?(?:table|view|function|procedure|index|trigger|type))"
)
DEFINITION = re.compile(rf"{_MODIFIERS}{_KEYWORDS}\b", re.IGNORECASE)
_OWN = re.compile(r"[ \t]*\d{1,7}(?:[:|│→\t]|\s\|\s)")
_NOT_A_TYPE = frozenset(
    {"return", "new", "else", "throw", "await", "in", "not", "and", "or", "yield", "raise", "import"}
)
_BINDING = r"(?:(?:export|default|const|let|var|local|static|final|public|private|val|readonly)\s+)*"
_CLOSER = re.compile(r"[}\])]|end\b|\{|fi\b|done\b|esac\b|else\b|elif\b|except\b|catch\b|finally\b|rescue\b")
ABOVE = 2000  # lines searched upwards for an enclosing definition
QUALIFIED = 50  # definitions of one name looked at for the right qualifier


class Symbol(NamedTuple):
    """Where a definition stands: lines from 1, both included, with the annotations and comments above it."""

    first: int
    last: int


def find(lines: Sequence[str], candidates: Iterator[int] | Sequence[int], dotted: str) -> Symbol | None:
    """The definition of `Foo.bar` (or `bar`, `Foo::bar`, `Foo#bar`) among `candidates`, line indices that hold its
    last name; the best kind of definition wins, the earliest on a tie, one inside its qualifier before others."""
    names = [name for name in re.split(r"\.|::|#|/", dotted) if name]
    if not names:
        return None
    ranked = [(rank, index) for index in candidates if (rank := rank_of(bare(lines[index]).strip(), names[-1]))]
    if not ranked:
        return None
    ranked.sort(key=lambda item: (-item[0], item[1]))
    best = ranked[0][1]
    if len(names) > 1:
        best = next((index for _, index in ranked[:QUALIFIED] if _inside(lines, index, names[-2])), best)
    return Symbol(_head(lines, best) + 1, _end(lines, best) + 1)


def bare(line: str) -> str:
    """The line without a number of its own (an editor's view), with its indentation."""
    match = _OWN.match(line)
    return line[match.end() :].expandtabs(4) if match else line.expandtabs(4)


def rank_of(line: str, name: str) -> int:
    """How surely the line defines `name`: 5 by keyword, 4 as a method, 3 as a bound function, 2 as a key, 0 not."""
    word = re.escape(name)
    if re.match(rf"{_MODIFIERS}{_KEYWORDS}\s+(?:[^=;]{{0,80}}[\s.:*&)])??[`\"']?{word}(?!\w)", line, re.IGNORECASE):
        return 5
    before, found, after = _split(line, name)
    if not found or line.startswith(("//", "#", "*", "--", "/*")):
        return 0
    after = after.lstrip()
    head = before.split()
    if after.startswith(("(", "<")) and not before.rstrip().endswith((".", "=", "(", ",", "->", "&&", "||", "!")):
        typed = bool(head) and head[0] not in _NOT_A_TYPE and head[-1] not in _NOT_A_TYPE
        opens = line.endswith(("{", ")", ",", "(")) or " throws " in line or line.endswith("{}")
        if (typed and opens and not line.endswith(";")) or (not head and line.endswith("{")):
            return 4
        if typed and line.endswith(");") and len(head) >= 2:
            return 2
    if re.match(rf"{_BINDING}{word}\s*(?::[^=]+)?[:=]=?\s*(?:async\b|function\b|\(|lambda\b|\w+\s*=>)", line):
        return 3
    if re.match(rf"(?:- )?[\"']?{word}[\"']?\s*[:=]", line):
        return 1
    return 1 if head and after.startswith(("=", ";", ":")) and head[0] not in _NOT_A_TYPE else 0


def _split(line: str, name: str) -> tuple[str, str, str]:
    at = -1
    while True:
        at = line.find(name, at + 1)
        if at < 0:
            return line, "", ""
        end = at + len(name)
        left = line[at - 1] if at else " "
        right = line[end] if end < len(line) else " "
        if not (left.isalnum() or left == "_" or right.isalnum() or right == "_"):
            return line[:at], name, line[end:]


def indent(line: str) -> int:
    """Columns of blanks before the text."""
    return len(line) - len(line.lstrip())


def _inside(lines: Sequence[str], index: int, outer: str) -> bool:
    """Whether an enclosing line with less indentation defines `outer`, or the line itself names it (Go, C++)."""
    own = bare(lines[index])
    depth = indent(own)
    if re.search(rf"\b{re.escape(outer)}\b\W{{0,4}}(?:\)|::|\.)", own):
        return True
    for above in range(index - 1, max(-1, index - ABOVE), -1):
        line = bare(lines[above])
        if line.strip() and indent(line) < depth:
            depth = indent(line)
            if rank_of(line.strip(), outer) >= 4:
                return True
            if depth == 0 and not line.strip().startswith(("}", "{", ")")):
                return False
    return False


def _head(lines: Sequence[str], index: int) -> int:
    """The first line of the annotations and the comment right above a definition."""
    depth = indent(bare(lines[index]))
    first = index
    while first > 0:
        above = bare(lines[first - 1])
        text = above.strip()
        if indent(above) not in (depth, depth + 1) or not text.startswith(("@", "//", "/*", "*", "#", "--", "///")):
            break
        first -= 1
    return first


def _end(lines: Sequence[str], index: int) -> int:
    """The last line of the body, told by indentation; closing marks at the definition's own level belong to it."""
    depth = indent(bare(lines[index]))
    last = index
    for below in range(index + 1, len(lines)):
        line = bare(lines[below])
        text = line.strip()
        if not text:
            continue
        if indent(line) > depth:
            last = below
            continue
        if indent(line) == depth and _CLOSER.match(text):
            last = below
            if text.rstrip(";,)") in {"}", "end", "fi", "done", "esac"}:
                break
            continue
        break
    return last
