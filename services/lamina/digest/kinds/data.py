"""JSON, NDJSON, XML, YAML: the shape in the label; keys, ids and samples in the lines."""

from __future__ import annotations

import re

import msgspec

from lamina.digest.kinds.logs import TROUBLE
from lamina.digest.kinds.plan import MASK, Content, Plan, probe, share

PARSED_UP_TO = 1024 * 1024  # characters; above it the shape is not counted
ROW = re.compile(r"\{.*\}[,]?$")
TAG = re.compile(r"</?[A-Za-z_][\w.:-]*(?:\s[^<>]*)?/?>|<\?xml|<!--")
YAML = re.compile(r"(?:- )?[\w./\"'-]+:(?:\s|$)|- \S")
NAMES = 0.3  # a value that repeats a known key is still a value
ONE_ENTRY = 100  # characters; a longer line holds more than one key
TEXTS = re.compile(r"(?<=[:>] )\"[^\"]*\"|>[^<]*<|(?<=:)\"[^\"]*\"")
KEY = re.compile(r"\"[^\"]{1,80}\"\s*:")


def looks(content: Content) -> bool:
    """It begins as JSON or XML does, or nearly every line is an object, a tag, or a YAML key."""
    start = content.text[:2000].lstrip()
    lines = content.lines.lines
    if start.startswith(("{", "[")) and (KEY.search(start) or start[1:].lstrip()[:1] in tuple('{["-0123456789]')):
        return not re.match(r"\[[A-Za-z ]+[\]:]", start)
    if share(lines, ROW) > 0.8 and len(lines) > 2:
        return True
    if start.lower().startswith(("<!doctype html", "<html")):
        return False
    return start.startswith("<?xml") or share(lines, TAG) > 0.6 or share(lines, YAML) > 0.85


def plan(content: Content) -> Plan:
    """Keys count when first seen, rows like an earlier one little, closing brackets nothing; the end is shown."""
    lines = content.lines.lines
    seen: set[str] = set()
    factors: list[float] = []
    for line in lines:
        key = KEY.match(line.body)
        outline = key.group() if key and len(line.body) < ONE_ENTRY else MASK.sub("0", TEXTS.sub("0", line.body))
        trouble = bool(TROUBLE.search(line.body))
        factors.append(0.0 if len(line.body) < 3 else 1.0 if trouble else 0.15 if outline in seen else 1.0)
        seen.add(outline)
    lead = [0, len(lines) - 1] if len(lines) > 1 and len(lines[-1].body) > 2 else []
    return Plan(shape(content), factors, lead, whole=True, names=NAMES)


def shape(content: Content) -> str:
    """What it is in a few words: `JSON object of 3 keys`, `412 JSON rows`, `XML`."""
    text = content.text.strip() if len(content.text) <= PARSED_UP_TO else ""
    start = content.text[:200].lstrip()
    if start.startswith("<"):
        return "XML"
    if not start.startswith(("{", "[")):
        return "YAML"
    try:
        value = msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        rows = sum(1 for line in probe(content.lines.lines) if line.body.startswith(("{", "[")))
        return f"{content.lines.total} JSON rows" if rows > 1 else "JSON"
    if isinstance(value, list):
        return f"JSON array of {len(value)}"
    if isinstance(value, dict):
        counts = [
            f"{key}[{len(item)}]" for key, item in list(value.items())[:3] if isinstance(item, list) and key.isascii()
        ]
        return f"JSON object of {len(value)} keys" + (f", {' '.join(counts)[:40]}" if counts else "")
    return "JSON"
