"""Token counts against true ones, kept in tests/fixtures/token_counts.json (o200k, bpe-openai 0.1.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import Invalid
from lamina.tokens import MEDIA_TOKENS, count, count_message, count_messages, counting
from lamina.tokens.estimate import estimate

SAMPLES = json.loads(Path(__file__).parent.parent.joinpath("fixtures", "token_counts.json").read_text("utf-8"))
FOUR_LANGUAGES = [
    s for s in SAMPLES if any(word in s["name"] for word in ("english", "korean", "chinese", "japanese"))
]


@pytest.fixture
def estimating(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Counts by the estimate, on machines with an exact counter too."""
    counting._counts.clear()
    with monkeypatch.context() as patch:
        patch.setattr(counting, "exact", lambda: None)
        yield
    counting._counts.clear()


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["name"] for sample in SAMPLES])
def test_the_estimate_is_hardly_below_the_truth_and_not_wildly_above(sample: dict[str, Any]) -> None:
    assert 0.95 * sample["tokens"] <= estimate(sample["text"]) <= 1.5 * sample["tokens"]


def test_the_estimate_of_prose_is_close_on_average() -> None:
    ratios = [estimate(sample["text"]) / sample["tokens"] for sample in FOUR_LANGUAGES]

    assert 1.0 <= sum(ratios) / len(ratios) <= 1.15


@pytest.mark.usefixtures("estimating")
@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (" " * 5_000, 5, 200),
        ("\n" * 5_000, 300, 600),
        ("." * 400, 5, 80),
        ("a" * 3_000, 375, 2_000),
        ("\x00" * 500, 450, 550),
        ("\ud800\udfff" * 50, 100, 600),
        ("😀" * 100, 100, 300),
    ],
)
def test_odd_texts_have_a_sane_estimate(text: str, least: int, most: int) -> None:
    assert least <= count(text) <= most


@pytest.mark.usefixtures("estimating")
def test_a_huge_text_is_counted_by_samples() -> None:
    part = "".join(sample["text"] for sample in SAMPLES)
    many = 60

    assert many * count(part) * 0.97 <= count(part * many) <= many * count(part) * 1.15


def test_the_exact_counter_is_used_where_it_is_installed() -> None:
    if counting.exact() is None:
        pytest.skip("needs bpe-openai")
    assert [count(sample["text"]) for sample in SAMPLES] == [sample["tokens"] for sample in SAMPLES]


def test_nothing_is_nothing() -> None:
    assert count("") == 0


def test_a_message_costs_its_text_and_a_little() -> None:
    text = SAMPLES[0]["text"]

    for content in (text, [{"type": "text", "text": text}]):
        assert count(text) < count_message({"role": "user", "content": content}) <= count(text) + 8


def test_calls_and_results_of_both_providers_are_counted() -> None:
    arguments = {"path": "src/main.py", "text": SAMPLES[2]["text"]}
    openai = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "edit", "arguments": json.dumps(arguments)}},
            {"id": "c2", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
        ],
    }
    anthropic = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": SAMPLES[1]["text"], "signature": "c2ln"},
            {"type": "tool_use", "id": "c1", "name": "edit", "input": arguments},
        ],
    }
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": SAMPLES[3]["text"]}]}

    assert count_message(openai) > count(SAMPLES[2]["text"])
    assert count_message(anthropic) > count(SAMPLES[1]["text"]) + count(SAMPLES[2]["text"])
    assert count_message({"role": "user", "content": [result]}) > count(SAMPLES[3]["text"])
    assert count_messages([openai, anthropic]) == 3 + count_message(openai) + count_message(anthropic)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0K" * 9_000}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 9_000}},
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image", "source": {"data": "A" * 50_000}}]},
    ],
)
def test_an_image_costs_what_images_cost_whatever_its_bytes(part: dict[str, Any]) -> None:
    assert MEDIA_TOKENS <= count_message({"role": "user", "content": [part]}) <= MEDIA_TOKENS + 20


def test_a_document_costs_more_the_larger_it_is() -> None:
    small, large = (
        count_message({"role": "user", "content": [{"type": "document", "source": {"data": "A" * size}}]})
        for size in (1_000, 800_000)
    )

    assert MEDIA_TOKENS <= small < 20_000 < large


@pytest.mark.parametrize("value", [object(), "\ud800", {1, object()}])
def test_what_is_no_json_is_invalid(value: object) -> None:
    with pytest.raises(Invalid, match="plain JSON"):
        count_message({"role": "user", "content": [{"type": "odd", "value": {"x": value}}]})
