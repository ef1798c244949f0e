"""Any text has a defined, repeatable count that no UTF-8 byte count can stay below."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lamina.tokens import count, count_message
from lamina.tokens.estimate import estimate


@given(st.text(max_size=400))
def test_a_count_is_repeatable_and_bounded(text: str) -> None:
    assert estimate(text) == estimate(text)
    assert (estimate(text) == 0) == (text == "")
    assert estimate(text) <= 4 * len(text) + 1
    assert count(text) == count(text)


@given(st.text(max_size=200), st.integers(2, 40))
def test_more_of_the_same_costs_more(text: str, times: int) -> None:
    assert estimate(text * times) >= estimate(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20).filter(lambda t: t.isascii()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "content", "x"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "name", "x"]), json_values))
def test_any_message_of_plain_json_has_a_count(message: dict[str, object]) -> None:
    assert count_message(message) >= 4
