"""The persona is a function of how atoms stand: no order, batch or moment of decision leaves a trace in it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.home import Home
from lamina.persona.select import REST_CHARS, STANDING_CHARS, Candidate, select
from lamina.persona.tables import INFERRED, WRITTEN, LineRow
from lamina.text.lines import escaped, mark_of, plain, written
from tests.support.persona import PersonaBench

DAY_US = 86_400_000_000
LINES = st.builds(
    Candidate,
    st.builds(
        LineRow,
        id=st.uuids().map(str),
        section=st.sampled_from(["standing", "project", "identity", "preferences", "ways", "people", "tensions"]),
        weight=st.integers(0, 110),
        first_us=st.integers(0, 900).map(lambda day: day * DAY_US),
        last_us=st.integers(0, 900).map(lambda day: day * DAY_US),
        until=st.sampled_from(["", "1970-06-01", "2030-01-01"]),
        held=st.sampled_from([INFERRED, INFERRED, INFERRED, WRITTEN]),
        project=st.sampled_from(["", "a", "b"]),
    ),
    st.integers(20, 500),
    st.sampled_from(["", "", "user.home", "answer.tone", "request.tone"]),
)


@given(st.lists(LINES, max_size=60), st.randoms(use_true_random=False))
def test_what_is_shown_depends_on_no_order(lines: list[Candidate], rng: random.Random) -> None:
    mixed = list(lines)
    rng.shuffle(mixed)

    found = select(lines, 900 * DAY_US)

    assert select(mixed, 900 * DAY_US) == found
    shown = {id for _, id in found.shown}
    assert {one.line.id for one in lines if one.line.held == WRITTEN} <= shown
    sections = dict((id, section) for section, id in found.shown)
    sizes = {one.line.id: one.chars for one in lines if one.line.held == INFERRED}
    standing = sum(sizes.get(id, 0) for id, section in sections.items() if section in ("standing", "project"))
    assert standing <= STANDING_CHARS
    assert sum(sizes.get(id, 0) for id in sections) - standing <= REST_CHARS


@given(st.text())
def test_any_text_is_one_line_and_reads_back(text: str) -> None:
    line = plain(text)
    assert "\n" not in line
    assert len(line.splitlines()) <= 1
    assert plain(line) == line
    if line and not line.startswith(("#", "<!--", "_", "---")) and not mark_of(line):
        assert written(f"- {escaped(line)} · p0123456789a") in (line, plain(line))


SAID = [
    *("always: be brief", "ask: skip it", "likes tea", "user.home=Seoul", "user.home=Busan", "way: test first"),
    *("maybe: likes rain", "here: use tabs", "now: use Vue", "preference:jazz=yes", "preference:jazz=no"),
]


@pytest.mark.parametrize("seed", range(4))
async def test_the_same_log_gives_the_same_file_whenever_it_was_decided(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    sessions = [[rng.choice(SAID) for _ in range(rng.randint(1, 4))] for _ in range(6)]
    files = []
    for often in (False, True):
        home = Home(tmp_path / str(often))
        home.prepare()
        bench = PersonaBench(home)
        for n, texts in enumerate(sessions):
            for m, text in enumerate(texts):
                await bench.say(text, session=f"s{n}", id=f"s{n}-{m}", after_s=86_400.0 if not m else 1.0)
            await bench.end(f"s{n}")
            if often:
                await bench.run()
        await bench.run()
        files.append(bench.text())

    assert files[0] == files[1]
