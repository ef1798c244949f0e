"""What holds for every text a tool may return, however hostile."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.digest import read, stub
from lamina.digest.text import clean

NUMBERED = re.compile(r"(\d+)\|(.*)", re.DOTALL)
WORDS = st.sampled_from(
    [
        "import os", "def run(self):", "class Foo {", "  return x;", "error: no such file", "at a.b.C(D.java:3)",
        "src/main/java/A.java", "{\"id\": 1, \"name\": \"x\"}", "+++ b/x.py", "@@ -1,2 +3,4 @@", "a,b,c", "# Title",
        "회의는 세 시에 시작합니다", "会议三点开始",
        "会議は三時に始まります", "\x1b[31mFAILED\x1b[0m tests/x.py", "12:x = 1",
        "[/n1]", "[n1 done]", "```", "</tool>", "\x00\x07", "2026-11-30T10:00:00Z INFO started", "https://x.org/a?b=c",
    ]
)  # fmt: skip
LINES = st.lists(st.one_of(WORDS, st.text(max_size=80)), max_size=120).map("\n".join)
BLOCKS = st.tuples(st.text(max_size=30), st.integers(1, 3000)).map(lambda pair: pair[0] * pair[1])
TEXTS = st.one_of(LINES, BLOCKS)
ARGUMENTS = st.dictionaries(
    st.text(max_size=8), st.one_of(st.text(max_size=60), st.integers(), st.none()), max_size=3
)


@given(text=TEXTS, tool=st.text(max_size=20), arguments=ARGUMENTS, is_error=st.booleans())
@settings(deadline=None, max_examples=200)
def test_a_stub_is_never_longer_and_always_the_same(
    text: str, tool: str, arguments: dict[str, object], *, is_error: bool
) -> None:
    """A stub costs no more than its result, says the same twice, and can be written as UTF-8."""
    first = stub("n1", tool, arguments, text, is_error=is_error)

    assert len(first) <= len(text)
    assert first == stub("n1", tool, arguments, text, is_error=is_error)
    if first != text:
        first.encode()


@given(text=TEXTS, budget=st.integers(0, 2000))
@settings(deadline=None, max_examples=200)
def test_digest_lines_carry_true_numbers(text: str, budget: int) -> None:
    """Each line inside the frame names a line of the result and shows a stretch of it, nothing else."""
    shown = stub("n1", "shell", {"command": "x"}, text, budget_chars=budget)
    if shown == text:
        return
    lines = text.split("\n")
    head, *digest, foot = shown.split("\n")

    assert head.startswith("[n1 ")
    assert foot == "[/n1]"
    for row in digest:
        match = NUMBERED.fullmatch(row)
        assert match is not None
        source = clean(lines[int(match[1]) - 1])
        own = re.match(r"(\d+):", match[2])
        body = match[2].strip("…")
        assert body in source or (own and body[own.end() :].strip("…") in source)


@given(text=TEXTS, data=st.data())
@settings(deadline=None, max_examples=200)
def test_reading_lines_is_exact(text: str, data: st.DataObject) -> None:
    """Reading all lines gives the original back, and two neighbouring ranges join to one."""
    total = text.count("\n") + 1
    middle = data.draw(st.integers(1, total))
    roomy = 10 * len(text) + 1000
    whole = read(text, lines=f"1-{total}", max_tokens=roomy)

    assert whole.exact == text
    assert whole.total_lines == total
    assert whole.omitted == ""
    if middle < total:
        left = read(text, lines=f"1-{middle}", max_tokens=roomy).exact
        assert left + read(text, lines=f"{middle + 1}-", max_tokens=roomy).exact == text


@given(text=TEXTS.filter(str.strip), data=st.data(), tokens=st.integers(20, 500))
@settings(deadline=None, max_examples=200)
def test_a_word_that_stands_in_the_text_is_shown(text: str, data: st.DataObject, tokens: int) -> None:
    """Whatever word of the text is asked for is in the answer, within its budget and a passage."""
    word = data.draw(st.sampled_from(text.split()))[:60]
    found = read(text, query=word, max_tokens=tokens)

    assert word in found.text
    assert found.exact.encode("utf-8", "surrogatepass")
    assert len(found.text) <= 3 * tokens + 1200
