"""Diffs and patches: files, hunks, then the changed lines."""

from __future__ import annotations

import re

from lamina.digest.kinds.plan import Content, Plan, probe

FILE = re.compile(r"(?:diff --git |diff -|\+\+\+ |--- [^-]|Index: |rename (?:from|to) )")
HUNK = re.compile(r"@@ .*@@|\d+(?:,\d+)?[acd]\d+")
NOISE = re.compile(r"(?:index [0-9a-f]{6,}|new file mode|deleted file mode|similarity index|\\ No newline)")


def looks(content: Content) -> bool:
    """It has both a file header and a hunk, or `diff --git`."""
    probed = probe(content.lines.lines)
    files = sum(1 for line in probed if FILE.match(line.body))
    hunks = sum(1 for line in probed if HUNK.match(line.body))
    return (files > 0 and hunks > 0) or any(line.body.startswith("diff --git ") for line in probed[:20])


def plan(content: Content) -> Plan:
    """New names of files first, hunks next; changed lines before context."""
    factors: list[float] = []
    lead: list[int] = []
    added = removed = files = 0
    for index, line in enumerate(content.lines.lines):
        body = line.body
        if body.startswith("+++ "):
            lead.append(index)
            factors.append(1.0)
            files += 1
        elif FILE.match(body) or HUNK.match(body):
            factors.append(0.6)
        elif NOISE.match(body):
            factors.append(0.05)
        elif body.startswith(("+", "-", ">", "<")):
            added += body[0] in "+>"
            removed += body[0] in "-<"
            factors.append(1.0)
        else:
            factors.append(0.25)
    return Plan(f"diff, {files or 1} files +{added} -{removed}", factors, lead[:12])
