"""The three texts Lamina adds to a prompt, where they stand, and how they are found again.

- Standing instructions: after the leading system messages, or before the goal where the list has none. They are
  the same from call to call, so the prefix stays cached.
- The note on dropped exchanges: right after the goal. It changes only when more is dropped.
- The canvas: at the end of the newest result that is cut. It is taken anew only when something is cut, so between
  two cuts nothing before the newest messages changes, and what it cannot know yet stands whole below it.

A block is taken out again only where it is, letter for letter, the one the state names: nobody's text is ever
taken for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamina.context.shapes import Message, Provider, is_system
from lamina.context.state import Dropped

_NODES = 12
_ASKED_CHARACTERS = 2000


def stable_block(text: str) -> str:
    """Standing instructions as they stand in the prompt."""
    return f"<lamina-memory>\n{text.strip()}\n</lamina-memory>" if text.strip() else ""


def canvas_block(text: str) -> str:
    """The canvas as it stands in the prompt."""
    return f"\n\n<lamina-canvas>\n{text.strip()}\n</lamina-canvas>" if text.strip() else ""


def note_block(dropped: Dropped) -> str:
    """What stands for the exchanges left out: how many, how to get them, and what the user last asked there."""
    if not dropped.total:
        return ""
    count = f"{dropped.total} earlier exchange{'s' if dropped.total > 1 else ''} left out here"
    lines = [f"{count}; recall finds what was said."]
    if dropped.nodes:
        lines.append(f"Results: read {', '.join(dropped.nodes)}.")
    if dropped.asked:
        lines.append(f"The user last asked there:\n{dropped.asked}")
    return "<lamina-note>\n" + "\n".join(lines) + "\n</lamina-note>"


def more_dropped(before: Dropped, count: int, last: str, nodes: Sequence[str], asked: str) -> Dropped:
    """`before` with more exchanges of the list at hand: `count` of its exchanges are out now, ending with `last`."""
    if len(asked) > _ASKED_CHARACTERS:
        asked = f"{asked[:_ASKED_CHARACTERS]} [...]"
    return Dropped(
        exchanges=count,
        last=last,
        total=before.total + count - before.exchanges,
        nodes=(*before.nodes, *nodes)[-_NODES:],
        asked=asked or before.asked,
    )


def without(messages: Sequence[Message], blocks: Sequence[str]) -> tuple[list[Message], list[int], set[str]]:
    """The messages without these blocks, the place each had before, and the blocks that were found."""
    kept: list[Message] = []
    places: list[int] = []
    found: set[str] = set()
    wanted = {block for block in blocks if block}
    for index, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, str) and content in wanted and message.get("role") in ("system", "developer", "user"):
            found.add(content)
            continue
        if isinstance(content, list) and message.get("role") == "user":
            rest = [part for part in content if not (_is_text(part) and part["text"] in wanted)]
            found |= {part["text"] for part in content if _is_text(part) and part["text"] in wanted}
            if content and not rest:
                continue
            if len(rest) < len(content):
                alone = len(rest) == 1 and _is_text(rest[0])  # as it was before a block was put beside it
                message = {**message, "content": rest[0]["text"] if alone else rest}
        kept.append(message)
        places.append(index)
    return kept, places, found


def with_stable(messages: list[dict[str, Any]], block: str) -> list[dict[str, Any]]:
    """The messages with the standing instructions in their place."""
    leading = 0
    while leading < len(messages) and is_system(messages[leading]):
        leading += 1
    if leading:
        added = {"role": messages[leading - 1]["role"], "content": block}
        return [*messages[:leading], added, *messages[leading:]]
    return _with_part(messages, 0, block, first=True)


def with_note(messages: list[dict[str, Any]], head: int, block: str, provider: Provider) -> list[dict[str, Any]]:
    """The messages with the note after the first `head` of them."""
    if provider is Provider.OPENAI or not head or messages[head - 1]["role"] != "user":
        return [*messages[:head], {"role": "user", "content": block}, *messages[head:]]
    return _with_part(messages, head - 1, block, first=False)


def _with_part(messages: list[dict[str, Any]], index: int, block: str, *, first: bool) -> list[dict[str, Any]]:
    message = messages[index]
    if message["role"] != "user":
        return [*messages[:index], {"role": "user", "content": block}, *messages[index:]]
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    added = {"type": "text", "text": block}
    whole = {**message, "content": [added, *parts] if first else [*parts, added]}
    return [*messages[:index], whole, *messages[index + 1 :]]


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and set(part) == {"type", "text"} and isinstance(part["text"], str)
