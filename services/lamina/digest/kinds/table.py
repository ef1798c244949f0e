"""CSV, TSV, pipe tables and columns of a terminal (kubectl, docker, ps): header, shape, first and last rows."""

from __future__ import annotations

import re
from collections import Counter

from lamina.digest.kinds.plan import Content, Plan, repeats

EXTRA = 200  # characters
DELIMITERS = ",\t;|"
RULE = re.compile(r"[-+=|:─┼\s]+$")
GAP = re.compile(r"\s{2,}|\t")


def looks(content: Content) -> bool:
    """Its lines fall into the same number of columns."""
    return columns(content) >= 2


def columns(content: Content) -> int:
    """How many columns the lines agree on; 0 where they do not."""
    raw = content.text[:20_000].split("\n")[:60]
    rows = [line.strip() for line in raw if line.strip() and not RULE.match(line)]
    if len(rows) < 4:
        return 0
    for delimiter in DELIMITERS:
        counts = Counter(row.strip("|").count(delimiter) for row in rows)
        count, agreeing = counts.most_common(1)[0]
        if count >= (1 if delimiter == "\t" else 2) and agreeing >= 0.8 * len(rows):
            return count + 1
    titles = GAP.split(rows[0])
    upper = sum(1 for title in titles if title == title.upper() and title[:1].isalpha())
    if len(titles) >= 3 and upper >= 0.7 * len(titles):
        return len(titles)
    return 0


def plan(content: Content) -> Plan:
    """The header first, then the first and the last row; rows count by what they alone show."""
    lines = content.lines.lines
    factors = [
        0.0 if RULE.match(line.body) else 0.5 if again else 1.0
        for line, again in zip(lines, repeats(lines), strict=True)
    ]
    rows = [index for index, factor in enumerate(factors) if factor]
    count = content.lines.total if content.lines.sampled else max(0, len(rows) - 1)
    return Plan(
        f"table, {count} rows x {columns(content)} columns", factors, [*rows[:2], *rows[-1:]], whole=True, extra=EXTRA
    )
