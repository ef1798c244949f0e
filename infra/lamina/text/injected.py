"""Text that memory itself put into a conversation must not be remembered a second time."""

from __future__ import annotations

import re

TAG = "lamina-memory"
_OPEN = re.compile(rf"<{TAG}(?=[\s>])[^<>]*>")


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
