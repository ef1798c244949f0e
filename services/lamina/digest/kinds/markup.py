"""HTML and Markdown: title and headings, links, then first sentences."""

from __future__ import annotations

import re

from lamina.digest.kinds.plan import Content, Plan, probe

HEADING = re.compile(r"#{1,6} \S|<h[1-6][ >]|<title|.*<title>|=+ .+ =+$", re.IGNORECASE)
LINK = re.compile(r"https?://|\]\(|href=", re.IGNORECASE)
MARK = re.compile(r"#{1,6} \S|[-*+] \S|\d+\. \S|```|> |\|.*\||!?\[.*\]\(|\*\*", re.IGNORECASE)
HTML = re.compile(
    r"<!doctype html|<html|<head|<body|</?(?:div|p|a|span|table|ul|li|script|style|meta|link)\b", re.IGNORECASE
)
TITLE = re.compile(r"#{1,6} \S")
CODE = re.compile(r"#!|(?:import|from|def|class|public|private|fi|done|esac|package|const|let|var|fn)\b(?!.*[.:]$)")
BOILERPLATE = re.compile(r"<(?:script|style|meta|link|svg|path)\b|[\w.#-]+\s*\{|</", re.IGNORECASE)


def looks(content: Content) -> bool:
    """HTML by its tags; Markdown by headings with lists, links or fences."""
    probed = probe(content.lines.lines)
    if sum(1 for line in probed if HTML.match(line.body)) >= max(2, 0.3 * len(probed)):
        return True
    marks = 0
    headings = 0
    fenced = False
    for line in probed:
        body = line.body
        if body.startswith("```"):
            fenced = not fenced
            marks += 1
        elif not fenced:
            if CODE.match(body) or body.endswith(("{", ";", "):")):
                return False
            headings += bool(TITLE.match(body))
            marks += bool(MARK.match(body) or LINK.search(body))
    return headings >= 1 and marks >= max(3, 0.15 * len(probed))


def plan(content: Content) -> Plan:
    """Headings lead; links count more than text, scripts and styles next to nothing."""
    lines = content.lines.lines
    html = bool(HTML.search(content.text[:4000]))
    factors: list[float] = []
    headings: list[int] = []
    for index, line in enumerate(lines):
        body = line.body
        if HEADING.match(body):
            headings.append(index)
            factors.append(2.0)
        elif html and BOILERPLATE.match(body):
            factors.append(0.1)
        else:
            factors.append(1.2 if LINK.search(body) else 0.6)
    return Plan(f"{'HTML' if html else 'Markdown'}, {len(headings)} headings", factors, headings[:3])
