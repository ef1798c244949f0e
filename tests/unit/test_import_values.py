"""Single values: injected memory, names within bounds, roles, times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lamina.errors import Invalid
from lamina.ids import token
from lamina.importer import values
from lamina.importer.records import Json
from lamina.text.injected import cut


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("<lamina-memory>x</lamina-memory>", ""),
        ('<lamina-memory trust="none" id="1">x\ny</lamina-memory>\n\nWhat now?', "What now?"),
        ("a\n\n<lamina-memory>x</lamina-memory>\n\nb <lamina-memory>y</lamina-memory>", "a\n\nb"),
        ("never closed <lamina-memory> stays", "never closed <lamina-memory> stays"),
        ("<lamina-memoryx>x</lamina-memory>", "<lamina-memoryx>x</lamina-memory>"),
        ("  untouched spaces  ", "  untouched spaces  "),
    ],
)
def test_injected_memory_is_cut_and_nothing_else(text: str, kept: str) -> None:
    assert cut(text) == kept


def test_many_open_tags_cost_no_more_than_their_length() -> None:
    text = "<lamina-memory>" * 200_000

    assert cut(text) == text


@pytest.mark.parametrize("name", ["s1", "", "conv-26/session_1", "대화" * 5])
def test_short_names_stay_as_they_are(name: str) -> None:
    assert values.bounded(name) == name


@pytest.mark.parametrize("name", ["x" * 121, "대화" * 40, "A" * 100_000, "é" * 41])
def test_long_names_are_bounded_and_stay_apart(name: str) -> None:
    short = values.bounded(name)

    assert len(token(short)) <= 120
    assert short == values.bounded(name)
    assert short != values.bounded(name + "x")


@pytest.mark.parametrize(
    ("given", "role"),
    [("user", "user"), (" Human ", "user"), ("developer", "system"), ("model", "assistant"), ("function", "tool")],
)
def test_roles_of_others_are_ours(given: str, role: str) -> None:
    assert values.role(given) == role


@pytest.mark.parametrize("given", ["", "narrator", None, 1, ["user"]])
def test_an_unknown_role_names_the_known_ones(given: Json) -> None:
    with pytest.raises(Invalid, match="assistant"):
        values.role(given)


def test_times_are_rfc_3339_or_unix_seconds() -> None:
    assert values.when("2026-01-01T09:00:00.5+09:00") == datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    assert values.when(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert values.when(None) is None


@pytest.mark.parametrize("given", ["2026-01-01T09:00:00", "today", "", True, 10**30, 1e300, -(10**20), [], {}])
def test_other_times_are_refused(given: Json) -> None:
    with pytest.raises(Invalid):
        values.when(given)


@pytest.mark.parametrize(
    ("file", "stem"),
    [
        ("a/b/chat.jsonl.gz", "chat"),
        ("chat.json", "chat"),
        ("-", "stdin"),
        (".json", ".json"),
        ("run.v2.traj", "run.v2"),
        ("대화.JSONL", "대화"),
        ("bad\udcff.json", "bad\ufffd"),
    ],
)
def test_a_file_names_its_conversation_without_folder_and_endings(file: str, stem: str) -> None:
    assert values.stem(file) == stem
