"""Reading an answer that is worth its tokens, or saying that it was not."""

from __future__ import annotations

from lamina.atoms.model.answer import Listed, Unreadable, listed
from lamina.llm import Answer, BadAnswer


def read(answer: Answer, name: str, *, whole: bool = False) -> Listed:
    """The items of an answer; `BadAnswer`, with its tokens, where it has none that can be trusted.

    An answer that ends within its list is taken only if it ran into the limit on its length, and then up to the last
    whole item: asking again would give the same. Where only the `whole` list makes sense it is not taken at all.
    """
    try:
        found = listed(answer.text, name)
    except Unreadable as error:
        raise BadAnswer(f"{answer.model}: {error}", answer.tokens) from error
    if found.cut and (whole or not answer.cut or not found.items):
        raise BadAnswer(f"{answer.model}: the answer breaks off after {len(found.items)} items", answer.tokens)
    return found
