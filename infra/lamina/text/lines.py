"""What a line says, as one line of Markdown that is text and nothing else; and what a person wrote, read back. Pure.

The words of an atom are untrusted: whoever talked to the agent chose them.
"""

from __future__ import annotations

import re
import unicodedata

MOST_CHARS = 300
MOST_WRITTEN_CHARS = 500
CUT = "…"
_MARK = re.compile(r"\s*·\s*(p[0-9a-hjkmnp-tv-z]{11})\s*\Z")
_BULLET = re.compile(r"\A\s{0,8}(?:[-*+]|\d{1,3}[.)])\s+")
_SPECIAL = re.compile(r"([\\`*\[\]<>|])")
_LEADING = re.compile(r"\A(?:[#+=~_-]|\d{1,9}[.)])")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_JOINER = "\u200d"


def plain(text: str, most: int = MOST_CHARS) -> str:
    """`text` on one line: no controls, no marks that turn or hide text, no lone surrogates; cut after `most`."""
    kept = []
    for one in text[: 4 * most]:
        kind = unicodedata.category(one)
        if kind in ("Cc", "Zl", "Zp", "Zs"):
            kept.append(" ")
        elif kind[0] != "C" or one == _JOINER:
            kept.append(one)
    line = " ".join("".join(kept).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + CUT


def escaped(line: str) -> str:
    """A plain line as Markdown that shows it as it is: no heading, fence, link or tag can stand in it."""
    safe = _SPECIAL.sub(r"\\\1", line)
    lead = _LEADING.match(safe)
    if lead is None:
        return safe
    at = lead.end() - 1  # of a number, the sign behind it
    return f"{safe[:at]}\\{safe[at:]}"


def said(text: str, subject: str) -> str:
    """The words of an atom; that the user said them goes without saying."""
    if subject in ("", "user") and text.startswith("User: "):
        return plain(text[len("User: ") :])
    return plain(text)


def item(line: str, mark: str) -> str:
    """A plain line as it stands in the file, with the mark of its source."""
    return f"- {escaped(line)} · {mark}"


def mark_of(line: str) -> str:
    """The mark at the end of a line of the file; empty where there is none."""
    found = _MARK.search(line[-64:])
    return found.group(1) if found else ""


def written(line: str) -> str:
    """What a person wrote on a line of the file, without bullet and mark; empty for a heading, comment or note."""
    text = line.strip()
    if not text or text.startswith(("#", "<!--", "_", "---")):
        return ""
    text = _MARK.sub("", _BULLET.sub("", text))
    return plain(_ESCAPED.sub(r"\1", text), MOST_WRITTEN_CHARS)
