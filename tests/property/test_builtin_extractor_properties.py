"""The built-in extractor takes any text: its spans are true, it keeps its bounds, it says the same twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lamina.atoms.builtin import extract
from lamina.atoms.builtin.extracting import MAX_ATOMS_A_TURN
from lamina.atoms.turns import Turn
from lamina.knowledge import ATOM_TYPES, MAX_ATOM_CHARS, MAX_PRIORITY

PIECES = st.sampled_from(
    [
        "I moved to Busan last Friday. ",
        "always ",
        "이제부터 ",
        "부산으로 이사했어요. ",
        "我上周搬到上海了。",
        "必ず",
        "先週引っ越しました。",
        "```",
        "「",
        '"',
        "?",
        "`",
        "\n",
        "\x00",
        "1.2.3 ",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=30), max_size=40).map("".join)


@given(texts=st.lists(TEXTS, max_size=4), role=st.sampled_from(["user", "assistant", "tool"]), stated=st.booleans())
def test_any_text_gives_true_spans_within_bounds(texts: list[str], role: str, stated: bool) -> None:
    kind = "tool" if role == "tool" else "stated" if stated else "turn"
    turns = [
        Turn(id=f"e{i}", text=text, time="2026-11-30T09:15:00+09:00", role=role, kind=kind)  # type: ignore[arg-type]
        for i, text in enumerate(texts)
    ]
    by_id = {turn.id: turn for turn in turns}

    atoms = extract(turns)

    assert atoms == extract(turns)
    assert len(atoms) <= (MAX_ATOMS_A_TURN + 40) * len(turns)
    for atom in atoms:
        (source,) = atom.sources
        assert 0 <= source.start < source.end <= len(by_id[source.id].text)
        assert atom.type in ATOM_TYPES
        assert 0 < len(atom.text) <= MAX_ATOM_CHARS
        assert 0 <= atom.priority <= MAX_PRIORITY
        if role == "tool":
            assert atom.quarantine


@given(earlier=st.lists(TEXTS, max_size=3), said=TEXTS)
def test_turns_before_the_window_are_never_a_source(earlier: list[str], said: str) -> None:
    context = [Turn(id=f"c{i}", text=text, time="2026-11-30T09:00:00Z") for i, text in enumerate(earlier)]
    window = [Turn(id="w", text=said, time="2026-11-30T09:15:00Z")]

    assert {source.id for atom in extract(window, context) for source in atom.sources} <= {"w"}
