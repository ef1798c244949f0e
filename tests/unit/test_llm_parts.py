"""Dialects, Retry-After, the budget, and which model a configuration means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lamina.config import LlmConfig
from lamina.errors import Invalid
from lamina.llm import Ask, dialect
from lamina.llm.budget import Meter, Spent, day_of, refused
from lamina.llm.source import model_of
from lamina.llm.wire import retry_after_s

ASK = Ask(system="s", user="u", name="n", schema={}, max_tokens=9)


@pytest.mark.parametrize(
    ("url", "model", "sent"),
    [
        ("https://api.openai.com/v1", "gpt-4o-mini", {}),
        ("https://api.openai.com/v1", "gpt-5-mini", {"reasoning_effort": "minimal"}),
        ("https://api.openai.com/v1", "gpt-5.2", {"reasoning_effort": "none"}),
        ("https://api.openai.com/v1", "o4-mini", {"reasoning_effort": "low"}),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen3-max", {"enable_thinking": False}),
        ("https://api.deepseek.com/v1", "deepseek-chat", {"thinking": {"type": "disabled"}}),
        ("https://api.moonshot.cn/v1", "kimi-k2", {"thinking": {"type": "disabled"}}),
        ("https://open.bigmodel.cn/api/paas/v4", "glm-5", {"thinking": {"type": "disabled"}}),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "g", {"reasoning_effort": "none"}),
        ("https://openrouter.ai/api/v1", "x/y", {"reasoning": {"enabled": False}}),
        ("http://localhost:8000/v1", "Qwen/Qwen3-8B", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("https://notdeepseek.com/v1", "m", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("https://api.mistral.ai/v1", "m", {}),
    ],
)
def test_thinking_is_switched_off_as_the_vendor_says(url: str, model: str, sent: dict[str, object]) -> None:
    ways = {"reasoning_effort", "enable_thinking", "thinking", "reasoning", "chat_template_kwargs"}
    parameters = dialect.of(url, model).parameters(ASK)

    assert {key: value for key, value in parameters.items() if key in ways} == sent


def test_models_that_reason_take_other_parameters() -> None:
    parameters = dialect.of("https://api.openai.com/v1", "gpt-5-mini").parameters(ASK)

    assert parameters["max_completion_tokens"] == 9
    assert not {"max_tokens", "temperature"} & set(parameters)


def test_giving_up_ends() -> None:
    for refusal in (
        "no",
        "temperature",
        "max_completion_tokens",
        "max_tokens max_completion_tokens",
        "response_format",
    ):
        left: dialect.Dialect | None = dialect.of("http://localhost/v1", "m")
        steps = 0
        while left is not None:
            left = left.simpler(refusal)
            steps += 1

            assert steps < 10, refusal


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("-3", 0.0),
        ("nan", 0.0),
        ("inf", 0.0),
        ("soon", 0.0),
        ("", 0.0),
    ],
)
def test_retry_after(said: str, seconds: float) -> None:
    assert retry_after_s({"retry-after": said}, 60.0) == seconds
    assert retry_after_s({}, 60.0) == 0.0


def test_the_day_is_that_of_utc() -> None:
    east = timezone(timedelta(hours=9))

    assert day_of(datetime(2026, 5, 2, 8, 59, tzinfo=east)) == "2026-05-01"
    assert day_of(datetime(2026, 5, 2, 9, 0, tzinfo=east)) == "2026-05-02"
    assert day_of(datetime(2026, 5, 2, 0, 0, tzinfo=UTC)) == "2026-05-02"


@pytest.mark.parametrize(
    ("day", "space", "spent", "key"),
    [
        (0, 0, (10**9, 10**9), ""),
        (100, 0, (0, 90), ""),
        (100, 0, (0, 91), "tokens_per_day"),
        (0, 50, (40, 10**9), ""),
        (0, 50, (41, 41), "tokens_per_space"),
        (100, 50, (41, 95), "tokens_per_day"),
    ],
)
def test_what_would_pass_a_limit_is_refused_with_its_name(
    day: int, space: int, spent: tuple[int, int], key: str
) -> None:
    config = LlmConfig(tokens_per_day=day, tokens_per_space=space)

    why = refused(config, Spent(in_space=spent[0], in_all=spent[1]), 10)

    assert (key in why) if key else why == ""


def test_the_meter_adds_spaces_and_begins_anew_each_day() -> None:
    meter = Meter()

    assert meter.note("a", "2026-05-01", 5) == Spent(in_space=5, in_all=5)
    assert meter.note("b", "2026-05-01", 7) == Spent(in_space=7, in_all=12)
    meter.add("b", "2026-05-01", 3)
    assert meter.note("b", "2026-05-01", 7) == Spent(in_space=10, in_all=15)
    assert meter.note("b", "2026-05-01", 11) == Spent(in_space=11, in_all=16)
    assert meter.note("a", "2026-05-02", 0) == Spent(in_space=0, in_all=0)
    meter.add("a", "2026-05-01", 100)
    assert meter.note("a", "2026-05-02", 1) == Spent(in_space=1, in_all=1)


def test_which_model_a_configuration_means() -> None:
    config = LlmConfig(base_url="http://localhost/v1", model="m", api_key_env="KEY")

    assert model_of(LlmConfig(), {}) is None
    with pytest.raises(Invalid, match="KEY"):
        model_of(config, {})
    made = model_of(config, {"KEY": "k"})
    assert made is not None
    assert made.name == "m"
