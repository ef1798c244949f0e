"""Lists of files and of places in files: find, ls, tree, grep, git status, search results."""

from __future__ import annotations

import re

from lamina.digest.kinds.plan import Content, Plan, probe

PATH = re.compile(
    r"(?:[MADRCU?!]{1,2}\s+|[-*+>]\s+|(?:modified|new file|deleted|renamed|both modified):\s+)?"
    r"\"?(?:(?:[A-Za-z]:)?[\w.@~$%+-]*(?:[/\\][\w.@$%+-]+)+[/\\]?|[\w@+-]+(?:\.[\w+-]+)+|[\w.@+-]+/)\"?[*@=|:]?"
    r"(?:\s+\(\d+ match\w*\))?$"
)
LONG = re.compile(r"[-dlbcps][rwxsStT-]{9}[.+@]?\s+\d+\s")
FOUND = re.compile(r"(?:[A-Za-z]:)?[\w./@+-]+(?::\d+[:,)]|\(\d+[,)]|-\d+-)|Binary file ")
TREE = re.compile(r"[│├└| `]+(?:──|--)\s*\S")
EXTRA = 350  # characters: a path cut short is no path
SUMMARY = re.compile(
    r"(?:total \d+$|found \d+|\d+ (?:files?|director|match|result)|end of|more than|no (?:match|files?))",
    re.IGNORECASE,
)


def looks(content: Content) -> bool:
    """Most lines are a path, a place in a file, or a row of `ls -l`."""
    probed = probe(content.lines.lines)
    if len(probed) < 2:
        return False
    hits = 0
    for line in probed:
        body = line.body
        hits += bool(PATH.match(body) or LONG.match(body) or FOUND.match(body) or TREE.match(body))
    return hits >= 0.6 * len(probed)


def plan(content: Content) -> Plan:
    """The count the tool itself gives comes first; a line counts by the names it is first to show."""
    lines = content.lines.lines
    factors: list[float] = []
    lead: list[int] = []
    places = rows = 0
    for index, line in enumerate(lines):
        places += bool(FOUND.match(line.body))
        summary = bool(SUMMARY.match(line.body))
        rows += not summary
        if summary and len(lead) < 2:
            lead.append(index)
        factors.append(1.0)
    exact = "about " if content.lines.sampled else ""
    count = content.lines.total if content.lines.sampled else rows
    return Plan(
        f"{exact}{count} {'places' if places > len(lines) / 2 else 'entries'}", factors, lead, whole=True, extra=EXTRA
    )
