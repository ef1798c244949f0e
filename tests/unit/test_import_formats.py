"""Every format, read from fixtures written by hand after its public description: right ones and wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamina.importer import BadRecord, Call, Item, SessionEnd, Skipped, Turn, detect, open_log

FIXTURES = Path(__file__).parents[1] / "fixtures" / "import"

# file, format, turns, calls, ends of sessions, skipped, bad records
TABLE = [
    ("claude_code.jsonl", "claude-code", 9, 2, 0, 6, 0),
    ("claude_code_bad.jsonl", "claude-code", 2, 1, 0, 0, 5),
    ("codex.jsonl", "codex", 5, 2, 0, 6, 0),
    ("codex_2025.jsonl", "codex", 2, 1, 0, 2, 0),
    ("codex_bad.jsonl", "codex", 1, 1, 0, 1, 3),
    ("openai.json", "openai", 3, 2, 0, 1, 0),
    ("openai.jsonl", "openai", 5, 1, 0, 0, 0),
    ("openai_responses.json", "openai", 2, 1, 0, 0, 0),
    ("openai_bad.json", "openai", 2, 0, 0, 0, 4),
    ("chatgpt_export.json", "openai", 2, 0, 0, 3, 0),
    ("anthropic.json", "anthropic", 5, 2, 0, 0, 0),
    ("anthropic_bad.json", "anthropic", 2, 1, 0, 0, 2),
    ("claude_export.json", "anthropic", 2, 0, 0, 0, 0),
    ("plain.jsonl", "jsonl", 3, 2, 0, 2, 0),
    ("plain_bad.jsonl", "jsonl", 2, 0, 0, 0, 9),
    ("sharegpt.jsonl", "jsonl", 4, 0, 0, 0, 0),
    ("locomo.json", "locomo", 4, 0, 3, 0, 0),
    ("locomo_bad.json", "locomo", 1, 0, 1, 0, 3),
    ("longmemeval.json", "longmemeval", 4, 0, 3, 0, 0),
    ("longmemeval_bad.json", "longmemeval", 1, 0, 1, 0, 2),
    ("swe_agent.traj", "swe-agent", 1, 2, 1, 1, 0),
    ("swe_agent_bad.jsonl", "swe-agent", 2, 2, 1, 0, 2),
    ("beam.jsonl", "beam", 4, 0, 0, 0, 0),
    ("memdaily.jsonl", "memdaily", 2, 0, 2, 0, 2),
    ("lifebench.jsonl", "lifebench", 5, 0, 1, 1, 0),
    ("personamem.json", "personamem", 4, 0, 1, 0, 1),
]


def read(name: str) -> list[Item]:
    with open_log(FIXTURES / name) as log:
        return list(log)


def turns(name: str) -> list[Turn]:
    return [item for item in read(name) if isinstance(item, Turn)]


def calls(name: str) -> list[Call]:
    return [item for item in read(name) if isinstance(item, Call)]


def bad(name: str) -> Iterator[tuple[int, str]]:
    return ((item.line, item.path) for item in read(name) if isinstance(item, BadRecord))


def test_every_fixture_is_in_the_table() -> None:
    assert sorted(path.name for path in FIXTURES.iterdir()) == sorted(row[0] for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_format_and_counts(row: tuple[str, str, int, int, int, int, int]) -> None:
    name, format, *counts = row
    found = Counter(type(item) for item in read(name))

    assert detect(FIXTURES / name) == format
    assert [found[kind] for kind in (Turn, Call, SessionEnd, Skipped, BadRecord)] == counts


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_ids_are_unique_in_their_session(row: tuple[str, str, int, int, int, int, int]) -> None:
    """Two records of one kind, session and id would be one event."""
    ids = Counter(
        (type(item), item.session, item.turn_id if isinstance(item, Turn) else item.call_id)
        for item in read(row[0])
        if isinstance(item, Turn | Call)
    )

    assert [key for key, n in ids.items() if n > 1] == []


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_every_time_has_an_offset(row: tuple[str, str, int, int, int, int, int]) -> None:
    times = [item.time for item in read(row[0]) if isinstance(item, Turn | Call) and item.time is not None]

    assert [time for time in times if time.utcoffset() is None] == []


def test_claude_code_keeps_its_ids_times_project_and_agent() -> None:
    turn = turns("claude_code.jsonl")[1]

    assert (turn.role, turn.turn_id, turn.session, turn.project, turn.agent) == (
        "user",
        "u-0002",
        "5e55-a",
        "orders",
        "claude-code",
    )
    assert turn.time == datetime(2026, 3, 1, 9, 0, 1, tzinfo=UTC)
    assert turn.text == "Which database does the order service use?"
    assert [(part.name, part.data.decode()) for part in turn.parts] == [
        ("system-reminder", "<system-reminder>The list of tasks is empty.</system-reminder>")
    ]


def test_claude_code_tells_people_from_the_program() -> None:
    said = {turn.turn_id: turn.role for turn in turns("claude_code.jsonl")}

    assert said["u-0001"] == said["u-0012"] == said["u-0015"] == "system"
    assert said["u-0014"] == "user", "typed while the model worked: it stands in an attachment line alone"


def test_claude_code_pairs_calls_and_keeps_subagents_apart() -> None:
    first, second = calls("claude_code.jsonl")

    assert (first.tool, first.call_id, first.arguments) == (
        "Read",
        "toolu_1",
        {"file_path": "/home/ada/orders/settings.toml"},
    )
    assert first.result == '[database]\nkind = "postgres"'
    assert (second.session, second.agent, second.is_error) == ("5e55-a/agent-6e06", "claude-code/6e06", True)


def test_claude_code_puts_reasoning_beside_the_words_it_led_to() -> None:
    turn = next(turn for turn in turns("claude_code.jsonl") if turn.turn_id == "u-0004")

    assert [(part.name, part.data) for part in turn.parts] == [("reasoning", b"The settings will say.")]


def test_memory_is_not_remembered_again() -> None:
    assert turns("claude_code.jsonl")[-3].text == "It uses Postgres."
    assert Skipped(
        next(item.source for item in read("plain.jsonl") if isinstance(item, Skipped) and "memory" in item.why),
        "memory's own words",
    ) in read("plain.jsonl")


def test_images_are_kept_as_their_bytes() -> None:
    png = b"\x89PNG\r\n\x1a\n"
    found = [
        (part.media_type, part.data)
        for name in ("claude_code.jsonl", "codex.jsonl", "openai.json")
        for turn in turns(name)
        for part in turn.parts
        if part.media_type == "image/png"
    ]

    assert found == [("image/png", png)] * 3
    assert calls("anthropic.json")[0].parts[0].data == b"\xff\xd8\xff"


def test_what_is_unknown_is_kept_whole() -> None:
    last = turns("anthropic.json")[-1]

    assert last.parts[-1].data == b'{"shape":[1,2],"type":"hologram"}'
    assert calls("claude_code_bad.jsonl")[0].parts[0].data.startswith(b'{"source":'), "base64 that is none"


def test_codex_numbers_by_line_and_pairs_by_call_id() -> None:
    found = turns("codex.jsonl")
    shell, patch = calls("codex.jsonl")

    assert [turn.turn_id for turn in found] == [f"0199-c0de:{line}" for line in (2, 3, 4, 13, 15)]
    assert [turn.role for turn in found][:3] == ["system", "system", "user"], "environment is not the user's"
    assert (shell.tool, shell.arguments, shell.is_error) == ("shell", {"command": ["make"]}, False)
    assert (patch.arguments, patch.result, patch.is_error) == (
        {"input": "*** Begin Patch\n*** End Patch"},
        "no hunks",
        True,
    )


def test_openai_arguments_of_any_shape_are_an_object() -> None:
    by_id = {call.call_id: call for call in calls("openai.json")}

    assert by_id["call_a"].arguments == {"city": "Seoul"}
    assert by_id["call_b"].arguments == {"input": "not json"}
    assert by_id["call_a"].result == "맑음, 21 °C"


def test_openai_call_without_result_waits_for_the_next_import() -> None:
    waiting = [item for item in read("openai.json") if isinstance(item, Skipped)]

    assert ["call_c" in item.why for item in waiting] == [True]


def test_conversations_of_one_file_are_kept_apart() -> None:
    assert {turn.session for turn in turns("openai.jsonl")} == {"openai", "greeting-2"}
    assert {turn.session for turn in turns("sharegpt.jsonl")} == {"sg-1", "sharegpt/2"}
    assert {turn.session for turn in turns("locomo.json")} == {
        "conv-x/session_1",
        "conv-x/session_2",
        "conv-y/session_1",
    }


def test_chatgpt_export_follows_the_branch_that_was_kept() -> None:
    assert [turn.text for turn in turns("chatgpt_export.json")] == ["Where is this?", "In Lyon."]


def test_anthropic_results_come_before_what_the_user_adds() -> None:
    kinds = [type(item).__name__ for item in read("anthropic.json")]

    assert kinds == ["Turn", "Turn", "Turn", "Call", "Call", "Turn", "Turn"]


def test_plain_lines_take_what_is_given_and_make_the_rest_from_their_place() -> None:
    first, second, third = turns("plain.jsonl")
    call, failed = calls("plain.jsonl")

    assert (first.session, first.turn_id, first.name, first.project) == ("s1", "t1", "Rin", "home")
    assert str(first.time) == "2026-05-20 18:30:00+09:00", "the offset is kept"
    assert second.time == datetime(2026, 5, 20, 9, 31, tzinfo=UTC), "Unix seconds"
    assert (third.session, third.turn_id, third.role) == ("plain", "plain:5", "user")
    assert (call.result, call.agent) == ('{"found":3}', "scout")
    assert (failed.call_id, failed.arguments, failed.is_error) == ("plain:4", {}, True)


def test_bad_records_name_their_place() -> None:
    assert [line for line, _ in bad("plain_bad.jsonl")] == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert list(bad("openai_bad.json")) == [(3, "$[1]"), (4, "$[2]"), (5, "$[3]"), (6, "$[4]")]
    assert list(bad("longmemeval_bad.json")) == [(1, "$[0]"), (2, "$[1].haystack_sessions[0][0]")]


def test_bad_records_say_what_is_wrong() -> None:
    why = {item.line: item.why for item in read("plain_bad.jsonl") if isinstance(item, BadRecord)}

    assert "UTF-8" in why[4]
    assert "role 'pirate' is unknown; known are" in why[7]
    assert "offset" in why[8]
    assert "surrogate" in why[11]


def test_locomo_follows_the_times_and_ids_of_the_set() -> None:
    first, second, other, _ = turns("locomo.json")

    assert (second.turn_id, second.name, second.role) == ("D1:2", "Bo", "user")
    assert second.time == datetime(2023, 5, 8, 13, 57, tzinfo=UTC), "a minute a turn"
    assert other.time == datetime(2023, 5, 9, 13, 56, tzinfo=UTC), "a day after the session before"
    assert first.parts == ()
    assert b"a dog on a sofa" in second.parts[0].data


def test_longmemeval_names_a_session_that_comes_again() -> None:
    found = turns("longmemeval.json")

    assert [(turn.session, turn.turn_id) for turn in found] == [
        ("q1/s-a", "s-a:0"),
        ("q1/s-a", "s-a:1"),
        ("q1/s-b", "s-b:0"),
        ("q1/s-a#2", "s-a:0"),
    ]
    assert found[1].time == datetime(2023, 4, 25, 4, 8, tzinfo=UTC)


def test_swe_agent_step_is_a_thought_and_a_call() -> None:
    call = calls("swe_agent.traj")[0]

    assert turns("swe_agent.traj")[0].text == "DISCUSSION\nfind it\n"
    assert (call.tool, call.call_id, call.arguments) == ("find_file", "0", {"command": "find_file settings.py\n"})
    assert call.time is None


def test_beam_clock_never_goes_back() -> None:
    times = [turn.time for turn in turns("beam.jsonl") if turn.session.startswith("100K/1/")]

    assert [f"{time:%Y-%m-%d %H:%M}" for time in times if time] == [
        "2024-03-15 00:00",
        "2024-03-15 00:01",
        "2024-03-15 00:02",
    ]
