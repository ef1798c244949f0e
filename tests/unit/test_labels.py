"""The labelled set for L1 is well-formed and of its promised size, and the scorer counts what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lamina.knowledge import Atom, AtomType, Span
from tests.support.labels import FOLDER, HALVES, KINDS, LANGUAGES, Conversation, Label, load, score
from tests.support.manners import is_greeting, is_question


def atom(one: Conversation, label: Label, quarantine: str = "", type: AtomType | None = None) -> Atom:
    text = next(said.text for said in one.turns if said.id == label.turn)
    start = text.index(label.quote)
    return Atom(
        type=type or label.type,
        text=label.quote,
        sources=(Span(label.turn, start, start + len(label.quote)),),
        scope=label.scope,
        polarity=label.polarity,
        valid_from=label.time.first if label.time else "",
        quarantine=quarantine,
    )


def all_right(one: Conversation) -> list[Atom]:
    return [atom(one, label, "told" if label.quarantine else "") for label in one.keep]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_its_promised_size(language: str) -> None:
    found = load(languages=[language])
    turns = {kind: sum(len(one.turns) for one in found if one.kind == kind) for kind in KINDS}
    keep = [label for one in found for label in one.keep]
    good = [label for label in keep if not label.quarantine]
    share = len({label.turn for label in good}) / sum(turns.values())

    assert sum(turns.values()) >= 120
    assert 0.4 <= turns["chat"] / sum(turns.values()) <= 0.6
    assert 0.39 <= share <= 0.48
    assert sum(label.time is not None for label in good) >= 15
    assert sum(label.type == "instruction" for label in good) >= 10
    assert sum(bool(label.replaces) for label in good) >= 6
    assert len(keep) - len(good) >= 3
    assert {label.type for label in good} == set(AtomType.__args__)  # type: ignore[attr-defined]
    assert any(said.name for one in found for said in one.turns)


def test_half_is_held_out() -> None:
    sizes = [sum(len(one.turns) for one in load(half)) for half in HALVES]

    assert sum(sizes) >= 480
    assert 0.45 <= sizes[1] / sum(sizes) <= 0.55


def test_a_perfect_extractor_scores_full_marks() -> None:
    got = score(load(), all_right)

    assert set(got.slices) == {"all", *LANGUAGES, *(f"{one}/{kind}" for one in LANGUAGES for kind in KINDS)}
    for one in got.slices.values():
        assert (one.precision, one.recall, one.type_share, one.dated_share) == (1.0, 1.0, 1.0, 1.0)
        assert (one.scope_share, one.polarity_share) == (1.0, 1.0)
        assert (one.obeyed, one.greetings, one.questions) == (0, 0, 0)
        assert one.quarantined == one.injections
    assert (got.wrong, got.missed) == ([], [])
    assert len(list(got.lines())) == len(got.slices) + 1


def test_an_extractor_that_keeps_nothing_has_no_recall() -> None:
    got = score(load(), lambda one: [])

    assert got["all"].recall == 0.0
    assert got["all"].labels == len(got.missed)


def test_an_extractor_that_keeps_every_turn_is_caught() -> None:
    def all_turns(one: Conversation) -> list[Atom]:
        return [Atom(type="persona", text="x", sources=(Span(said.id, 0, len(said.text)),)) for said in one.turns]

    for name, one in score(load(), all_turns).slices.items():
        assert one.precision < 0.5, name
        assert one.recall == 1.0, name
        assert one.dated_right == 0
        assert one.questions > 0
        assert one.obeyed == one.injections > 0


def test_what_is_obeyed_or_of_the_wrong_type_counts_against_the_extractor() -> None:
    obeying = score(load(), lambda one: [atom(one, label, type="persona") for label in one.keep])["all"]
    timid = score(load(), lambda one: [atom(one, label, "unsure") for label in one.keep])["all"]

    assert obeying.obeyed == obeying.injections == obeying.atoms - obeying.right
    assert obeying.type_share < 0.5
    assert (timid.right, timid.found) == (0, 0)
    assert timid.quarantined == timid.injections


def test_less_than_half_of_the_shorter_one_is_no_hit() -> None:
    one = next(one for one in load("tuned") if one.keep)
    label = one.keep[0]
    whole = atom(one, label).sources[0]

    def shifted(by: int) -> float:
        moved = Span(whole.id, whole.start + by, whole.end + by)
        return score([one], lambda _: [Atom(type="persona", text="x", sources=(moved,))])["all"].precision

    assert shifted(len(label.quote) // 2) == 1.0
    assert shifted(len(label.quote) // 2 + 1) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "hey! lol",
        "Thanks so much",
        "안녕하세요~ ㅎㅎ",
        "감사합니다!!",
        "谢谢！",
        "哈喽",
        "こんばんは〜",
        "ありがとうございます。",
    ],
)
def test_greetings_are_known(text: str) -> None:
    assert is_greeting(text)


@pytest.mark.parametrize(
    "text", ["right?", "그런가요??", "왜 그럴까요", "要戴帽子吗", "どした？笑", "普通ですか。", "why? 😂"]
)
def test_questions_are_known(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text", ["I say hi to Bo each day.", "부산에 살아요 ㅎㅎ", "我住在重庆。", "山形に住んでいます。"]
)
def test_statements_are_neither(text: str) -> None:
    assert not is_greeting(text)
    assert not is_question(text)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"quote": "nowhere to be found"}, "does not stand once"),
        ({"turn": "nobody"}, "does not stand once"),
        ({"type": "gossip"}, "gossip"),
        ({"time": {"from": "2026-02-02", "to": "2026-02-01"}}, "ends before it begins"),
        ({"replaces": "nobody"}, "says nothing before"),
        ({"scope": "global", "type": "persona"}, "no instruction"),
        ({"type": "instruction", "scope": ""}, "without scope"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_label_is_refused(tmp_path: Path, change: dict[str, object], why: str) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "en_chat_tuned.jsonl"
    first, *rest = path.read_text().splitlines()
    line = json.loads(first)
    line["keep"][0].update(change)
    path.write_text("\n".join([json.dumps(line), *rest]))

    with pytest.raises(ValueError, match=why):
        load("tuned", ["en"], tmp_path)


def test_a_turn_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "en_chat_tuned.jsonl"
    path.write_text(path.read_text() * 2)

    with pytest.raises(ValueError, match="stand twice"):
        load("tuned", ["en"], tmp_path)
