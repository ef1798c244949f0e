"""`fit` on generated conversations of both providers."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.context import Fitted, Known, Observation, Provider, State, fit, validate
from lamina.errors import Invalid, TooLarge
from lamina.tokens import count_messages

WORDS = [
    "build",
    "failed",
    "src/app/main.py",
    "line",
    "42",
    "오류",
    "失败",
    "エラー",
    "{}",
    "\n",
    "AssertionError",
    "ok",
]
CANVAS = 'flowchart TD\n  g["goal"]\n'
STABLE = "Always answer in Korean."


class Step(NamedTuple):
    """One exchange of a conversation: kept small, so that a failing example can be read."""

    seed: int
    results: tuple[int, ...]  # words of each result, one a call
    arguments: int  # words of each call's arguments
    thinks: bool
    user: bool
    shape: int


steps = st.builds(
    Step,
    seed=st.integers(0, 99),
    results=st.lists(st.sampled_from([1, 8, 40, 40, 300, 2500]), max_size=3).map(tuple),
    arguments=st.sampled_from([3, 3, 200]),
    thinks=st.booleans(),
    user=st.sampled_from([False, False, False, True]),
    shape=st.integers(0, 5),
)
conversations = st.tuples(st.sampled_from([Provider.OPENAI, Provider.ANTHROPIC]), st.lists(steps, max_size=24))
windows = st.sampled_from([600, 1500, 4000, 12000])
Conversation = tuple[Provider, list[Step]]


def words(seed: int, number: int) -> str:
    return "go " + " ".join(WORDS[(seed * 7 + i * (1 + seed % 5)) % len(WORDS)] for i in range(number))


def build(conversation: Conversation) -> list[dict[str, Any]]:
    provider, exchanges = conversation
    if provider is Provider.OPENAI:
        system = "developer" if len(exchanges) % 2 else "system"
        messages: list[dict[str, Any]] = [{"role": system, "content": "You fix bugs."}] if len(exchanges) % 3 else []
        messages.append({"role": "user", "content": words(len(exchanges), 12), "name": "kim"})
        return messages + [message for i, step in enumerate(exchanges) for message in openai(i, step)]
    messages = [{"role": "user", "content": words(len(exchanges), 12)}]
    return messages + [message for i, step in enumerate(exchanges) for message in anthropic(i, step)]


def openai(number: int, step: Step) -> list[dict[str, Any]]:
    arguments = json.dumps({"cmd": words(step.seed, step.arguments), "n": 1})
    calls = [
        {"id": f"c{number}-{i}", "type": "function", "index": i, "function": {"name": "run", "arguments": arguments}}
        for i in range(len(step.results))
    ]
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": words(step.seed, 9)}]
    if calls:
        messages[0] |= {"tool_calls": calls, "content": None if step.shape == 0 else words(step.seed, 4)}
    for i, size in enumerate(step.results):
        text: Any = words(step.seed + i, size)
        if step.shape == 1:
            text = [{"type": "text", "text": text}]
        messages.append({"role": "tool", "tool_call_id": f"c{number}-{i}", "content": text, "x": {"kept": True}})
    if step.user or not calls:
        messages.append({"role": "user", "content": words(step.seed, 30)})
    return messages


def anthropic(number: int, step: Step) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": words(step.seed, 6)}]
    if step.thinks:
        parts.insert(0, {"type": "thinking", "thinking": words(step.seed, 80), "signature": "sig"})
    results: list[dict[str, Any]] = []
    for i, size in enumerate(step.results):
        call = {"cmd": words(step.seed, step.arguments), "n": 1}
        parts.append({"type": "tool_use", "id": f"t{number}-{i}", "name": "run", "input": call})
        content: Any = words(step.seed + i, size)
        if step.shape < 2:
            content = [{"type": "text", "text": content, "cache_control": {"type": "ephemeral"}}]
        if step.shape == 0:
            content.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}})
        results.append(
            {"type": "tool_result", "tool_use_id": f"t{number}-{i}", "content": content, "is_error": False}
        )
    if step.user or not step.results:
        results.append({"type": "text", "text": words(step.seed, 30)})
    return [{"role": "assistant", "content": parts}, {"role": "user", "content": results}]


class Recorder:
    """Records results as a client does; what a stub says depends on the result alone."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}

    def __call__(self, seen: Observation) -> Known | None:
        return self.known.get(seen.key)

    def record(self, seen: Observation) -> None:
        node = f"n{len(self.known)}"
        stub = f"[{node} {seen.tool}] {seen.text[:160]} ... read {node} for the rest"
        self.known[seen.key] = Known(node=node, stub=min(stub, seen.text, key=len))

    def fit(self, messages: list[dict[str, Any]], window: int, state: State | None = None, **options: Any) -> Fitted:
        for _ in range(2):
            fitted = fit(messages, window, stubs=self, state=state, **options)
            if not fitted.unrecorded:
                return fitted
            for seen in fitted.unrecorded:
                self.record(seen)
        raise AssertionError("results stay unrecorded")


def fitted_or_too_large(
    recorder: Recorder, messages: list[dict[str, Any]], window: int, **options: Any
) -> Fitted | None:
    try:
        return recorder.fit(messages, window, **options)
    except TooLarge:
        return None


@settings(max_examples=150)
@given(conversation=conversations, window=windows, keep=st.sampled_from([1, 3, 10]))
def test_fits_stays_valid_never_longer_and_changes_nothing_given(
    conversation: Conversation, window: int, keep: int
) -> None:
    provider, messages = conversation[0], build(conversation)
    assert validate(messages, provider) == []
    given_list = copy.deepcopy(messages)

    fitted = fitted_or_too_large(Recorder(), messages, window, keep=keep, canvas=CANVAS)

    assert messages == given_list
    if fitted is None:
        return
    assert validate(fitted.messages, provider) == []
    assert fitted.tokens == count_messages(fitted.messages) <= min(window, fitted.before)
    assert fitted.messages[0] == messages[0] or provider is Provider.ANTHROPIC
    assert fitted == fitted_or_too_large(Recorder(), messages, window, keep=keep, canvas=CANVAS)


@settings(max_examples=150)
@given(conversation=conversations, window=windows)
def test_what_was_fitted_is_left_as_it_is(conversation: Conversation, window: int) -> None:
    messages = build(conversation)
    recorder = Recorder()
    once = fitted_or_too_large(recorder, messages, window, canvas=CANVAS, stable_text=STABLE)
    if once is None:
        return

    fed_back = recorder.fit(once.messages, window, once.state, canvas=CANVAS, stable_text=STABLE)
    given_again = recorder.fit(messages, window, once.state, canvas=CANVAS, stable_text=STABLE)

    assert given_again.messages == once.messages
    assert fed_back.messages == once.messages
    assert fed_back.cuts == given_again.cuts == ()
    assert given_again.state == once.state
    assert fed_back.state == once.state


@settings(max_examples=60)
@given(conversation=conversations, window=windows, fed_back=st.booleans())
def test_messages_already_given_are_given_again_unchanged_until_something_is_cut(
    conversation: Conversation, window: int, fed_back: bool
) -> None:
    recorder = Recorder()
    provider, messages = conversation[0], build(conversation)
    state: State | None = None
    before: list[dict[str, Any]] = []
    host: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        host.append(message)
        following = messages[index + 1]["role"] if index + 1 < len(messages) else "assistant"
        if message["role"] == "assistant" or following != "assistant":
            continue
        fitted = fitted_or_too_large(
            recorder, host, window, state=state, canvas=f"{CANVAS}{index}", stable_text=STABLE
        )
        if fitted is None:
            return
        assert validate(fitted.messages, provider) == []
        assert fitted.tokens <= window
        if not fitted.cuts:
            assert fitted.messages[: len(before)] == before
        state, before = fitted.state, fitted.messages
        host = list(fitted.messages) if fed_back else host


@settings(max_examples=100)
@given(conversation=conversations, window=windows)
def test_every_cut_names_its_place_and_saves(conversation: Conversation, window: int) -> None:
    messages = build(conversation)
    recorder = Recorder()
    fitted = fitted_or_too_large(recorder, messages, window)
    for cut in fitted.cuts if fitted else ():
        assert cut.after < cut.before
        assert 0 <= cut.index < len(messages)
        assert (cut.key is None) == (cut.node is None)
        assert cut.key is None or recorder.known[cut.key].node == cut.node


odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "c1", "text", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
parts = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image"])},
    optional={
        "text": st.sampled_from(["hello there", ""]) | odd,
        "id": st.just("c1") | odd,
        "name": st.just("run") | odd,
        "input": st.just({"a": "b" * 900}) | odd,
        "tool_use_id": st.just("c1") | odd,
        "content": st.just("r " * 600) | odd,
    },
)
openai_calls = st.fixed_dictionaries(
    {"id": st.just("c1") | odd},
    optional={
        "type": st.sampled_from(["function", "custom"]) | odd,
        "function": st.just({"name": "run", "arguments": '{"a": "' + "b" * 900 + '"}'}) | odd,
        "custom": st.just({"name": "run", "input": "b" * 900}) | odd,
    },
)
odd_messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "assistant", "tool", "function"])},
        optional={
            "content": st.just("r " * 600) | st.lists(parts, min_size=1, max_size=3) | odd,
            "tool_calls": st.lists(openai_calls, max_size=2) | odd,
            "tool_call_id": st.just("c1") | odd,
        },
    ),
    max_size=6,
)


@settings(max_examples=300)
@given(messages=odd_messages, window=st.sampled_from([60, 400, 2000]))
def test_any_list_has_a_defined_result(messages: list[dict[str, Any]], window: int) -> None:
    """Whatever the shape: a list that fits, `Invalid`, or `TooLarge`."""
    try:
        fitted = Recorder().fit(messages, window, canvas=CANVAS, stable_text="x")
    except (Invalid, TooLarge):
        return
    assert fitted.tokens <= window
