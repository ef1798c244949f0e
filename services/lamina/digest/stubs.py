"""The stub of a tool result: what stands in a context in its place."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.digest.choose import choose
from lamina.digest.kinds import plan_of
from lamina.digest.kinds.plan import Call, Content, call_of
from lamina.digest.text import Lines, clean, lines_of
from lamina.digest.words import words_in

SMALL = 400  # characters; a stub of less would hold little beside its own frame
BASE, SHARE, SHARE_UP_TO = 190, 0.115, 6000  # a stub: BASE + SHARE of the result up to SHARE_UP_TO characters
CALL = 32  # characters of the call in the stub
KNOWN_UP_TO = 8000  # characters of the arguments whose words need no showing


def stub(
    node: str,
    tool: str,
    arguments: Mapping[str, object],
    result: str,
    *,
    budget_chars: int | None = None,
    is_error: bool = False,
) -> str:
    """The stub of `result`: what the call was, its size, a digest, and how to read more.

    A pure function: the same input gives the same text, without model, clock or I/O, in time linear in the size.
    Never longer than the result, and a small result is returned as it is. Every line between the first and the last
    begins with the number of a line of the result and goes on with its text, without control characters; `…` marks
    where a line is cut. Nothing in the result can begin a line of the stub, so nothing in it can close its frame.
    `budget_chars` bounds the whole stub (the two lines of the frame are always there); the default grows with the
    result to some 900, more for what must not be cut.
    """
    if len(result) <= SMALL and budget_chars is None:
        return result
    call = call_of(tool, arguments, is_error)
    content = Content(result, lines_of(result), call)
    plan = plan_of(content)
    budget = (
        budget_chars if budget_chars is not None else int(BASE + plan.extra + SHARE * min(len(result), SHARE_UP_TO))
    )
    head = heading(node, call, plan.label, content.lines, len(result))
    foot = f"[/{node}]"
    known = frozenset(word.text for word in words_in(call.arguments[:KNOWN_UP_TO]))
    lines = choose(content.lines.lines, plan, known, budget - len(head) - len(foot) - 2)
    text = "\n".join([head, *lines, foot])
    return text if len(text) < len(result) else result


def heading(node: str, call: Call, label: str, lines: Lines, size: int) -> str:
    """The first line: node, call, kind, size, and how to read more."""
    failed = "failed, " if call.is_error else ""
    return (
        f"[{node} {said(call)}: {failed}{label}, {lines.total} lines, {size} chars; read(node, query|lines|symbol)]"
    )


def said(call: Call) -> str:
    """The call in a few characters: its tool, and the beginning and the end of what it was given."""
    given = " ".join(clean(call.arguments[:400]).split())
    text = given if given.startswith(call.tool) else f"{clean(call.tool)} {given}".strip()
    return text if len(text) <= CALL else f"{text[: CALL // 2 - 1]}…{text[-CALL // 2 :]}"


def binary_stub(
    node: str, tool: str, arguments: Mapping[str, object], *, size_bytes: int, media_type: str = ""
) -> str:
    """The stub of a result that is no text: what it is and its size; it has no lines to read."""
    kind = f"{media_type}, " if media_type else ""
    return (
        f"[{node} {said(call_of(tool, arguments, False))}: not text, {kind}{size_bytes} bytes kept whole as a blob]"
    )
