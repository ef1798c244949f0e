"""Text that memory itself put into a conversation must not be remembered a second time."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

TAG = "lamina-memory"
_OPEN = re.compile(rf"<{TAG}(?=[\s>])[^<>]*>")


def wrapped(parts: Iterable[str], note: str) -> str:
    """Parts of a text as one block for a prompt: escaped, marked, recognised by `cut`; empty without parts."""
    lines = [html.escape(part, quote=False) for part in parts if part]
    return "\n".join((f'<{TAG} trust="data" note="{note}">', *lines, f"</{TAG}>")) if lines else ""


def cut(text: str, tag: re.Pattern[str] = _OPEN, close: str = f"</{TAG}>") -> str:
    """`text` without the blocks that memory injected, and without the blank lines they leave behind.

    A block that is never closed stays: it may be what somebody wrote. Text without a block comes back as
    it was. Linear in the length of the text.
    """
    kept: list[str] = []
    at = 0
    while (opening := tag.search(text, at)) is not None:
        end = text.find(close, opening.end())
        if end < 0:
            break
        kept.append(text[at : opening.start()])
        at = end + len(close)
    if not kept:
        return text
    kept.append(text[at:])
    return re.sub(r"\n{3,}", "\n\n", "".join(kept)).strip()
