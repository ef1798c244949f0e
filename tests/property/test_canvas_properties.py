"""Any events give a canvas in the small part of Mermaid's grammar that is safe whatever the labels say."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.offload.canvas import CallSeen, Canvas, TurnSeen, fold, render, terms

LABEL = r'"[^"`;<>\\\n\r]+"'
LINES = re.compile(
    rf"  goal\(\[{LABEL}\]\)|  [st]\d+\[{LABEL}\]|  t\d+\(\[{LABEL}\]\)|  g\d+\[\[{LABEL}\]\]"
    r"|  goal(?: --> [stg]\d+)+|  [st]\d+ -\.-> s\d+"
)
hostile = st.one_of(
    st.text(max_size=200),
    st.text(alphabet='"`;<>%{}[]()|#&\\\n end-*:.', max_size=80),
    st.sampled_from(["src/a/b.py", "OrderMapper", "end", "%%{init}%%", "x" * 10_000, "오류 메시지", "\ud800"]),
)
calls = st.builds(
    CallSeen,
    node=hostile,
    tool=hostile,
    arguments=hostile,
    is_error=st.sampled_from([True, False, None]),
    terms=hostile.map(lambda text: terms(text, 24)),
)
turns = st.builds(TurnSeen, role=st.sampled_from(["user", "assistant"]), text=hostile)


@settings(max_examples=200)
@given(st.lists(st.one_of(calls, turns), max_size=40))
def test_every_canvas_is_in_the_safe_grammar_and_small(events: list[CallSeen | TurnSeen]) -> None:
    canvas = Canvas()
    for seen in events:
        canvas = fold(canvas, seen)

    text = render(canvas)

    head, *lines = text.removesuffix("\n").split("\n")
    assert head == "flowchart TD"
    assert [line for line in lines if not LINES.fullmatch(line)] == []
    assert "%%" not in text
    assert text.isprintable() or text.replace("\n", "").isprintable()
    assert len(text.encode()) < 8_000


@given(st.lists(st.one_of(calls, turns), max_size=25), st.integers(0, 25))
def test_the_canvas_is_a_fold(events: list[CallSeen | TurnSeen], cut: int) -> None:
    """The same events give the same canvas, in one go or from a state kept between."""
    once = Canvas()
    for seen in events:
        once = fold(once, seen)
    again = Canvas()
    for seen in events[:cut]:
        again = fold(again, seen)
    for seen in events[cut:]:
        again = fold(again, seen)

    assert again == once
    assert render(again) == render(once)
