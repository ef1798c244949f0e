"""An endpoint that misbehaves in every way seen in the field: each has a defined end, and its tokens are counted."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from lamina.errors import Permanent, Transient
from lamina.llm import (
    Ask,
    AskTooLarge,
    BadAnswer,
    ModelBusy,
    ModelDenied,
    ModelError,
    ModelInvalid,
    ModelTimeout,
    ModelUnavailable,
    Refused,
)
from lamina.llm.endpoint import ATTEMPTS, Endpoint
from lamina.llm.wire import MAX_ANSWER_BYTES
from lamina.tokens import count
from tests.support.llm import MODEL, Reply, completion, declined, endpoint, said
from tests.support.llm import Endpoint as Scripted

ASK = Ask(system="Be brief.", user="Say something.", name="thing", schema={"type": "object"}, max_tokens=50)
ASKED = count(ASK.system) + count(ASK.user)
HTML = Reply(body=b"<html><body>502 Bad Gateway</body></html>", media_type="text/html")


@pytest.fixture
def server() -> Iterator[Scripted]:
    with endpoint() as scripted:
        yield scripted


class Sleeps:
    """Does not sleep, and says how long it should have."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


@pytest.fixture
async def model(server: Scripted, sleeps: Sleeps) -> AsyncIterator[Endpoint]:
    made = Endpoint(server.url, MODEL, "secret", sleep=sleeps)
    yield made
    await made.close()


async def test_an_answer(server: Scripted, model: Endpoint) -> None:
    server.script(said("hello", usage=77, model="scripted-1-2026"))

    answer = await model.ask(ASK)

    assert (answer.text, answer.model, answer.tokens, answer.cut) == ("hello", "scripted-1-2026", 77, False)
    request = server.requests[0]
    assert request["messages"] == [
        {"role": "system", "content": ASK.system},
        {"role": "user", "content": ASK.user},
    ]
    assert request["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert (request["max_tokens"], request["temperature"]) == (50, 0)
    assert server.headers[0]["authorization"] == "Bearer secret"


async def test_without_a_key_none_is_sent_whatever_the_environment_says(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of another service")
    monkeypatch.setenv("OPENAI_ORG_ID", "of another service")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    server.script(said("hello"))
    model = Endpoint(server.url, MODEL)

    await model.ask(ASK)
    await model.close()

    assert "authorization" not in server.headers[0]
    assert "of another service" not in json.dumps(server.headers[0])


async def test_tokens_are_estimated_where_the_endpoint_does_not_tell(server: Scripted, model: Endpoint) -> None:
    unusable: list[object] = [
        None,
        {},
        {"total_tokens": -5},
        {"total_tokens": 10**15},
        {"total_tokens": "many"},
        [],
        5.5,
    ]
    for usage in unusable:
        server.script(Reply(body=completion("hello", usage=usage)))
        server.requests.clear()

        assert (await model.ask(ASK)).tokens == ASKED + count("hello")


async def test_asked_and_answered_add_up(server: Scripted, model: Endpoint) -> None:
    server.script(said("hello", usage={"prompt_tokens": 5, "completion_tokens": 6}))

    assert (await model.ask(ASK)).tokens == 11


async def test_text_in_parts(server: Scripted, model: Endpoint) -> None:
    server.script(said([{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}, 5]))

    assert (await model.ask(ASK)).text == "hello"


async def test_a_cut_answer_is_told(server: Scripted, model: Endpoint) -> None:
    server.script(said("hel", finish="length"))

    assert (await model.ask(ASK)).cut


@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        (declined(500), 0),
        (declined(500, usage=30), 30),
        (declined(502), 0),
        (declined(429), 0),
        (HTML, ASKED),
        (Reply(body=b""), ASKED),
        (Reply(body=b"null"), ASKED),
        (Reply(body=b"\xff\xfe"), ASKED),
        (Reply(body=b"[" * 100_000), ASKED),
        (Reply(body=b'{"choices": []}'), ASKED),
        (Reply(body=b'{"choices": [], "usage": {"total_tokens": 9}}'), 9),
        (Reply(body=b'{"choices": [{"message": null}]}'), ASKED),
        (Reply(body=b'{"choices": "none"}'), ASKED),
        (Reply(body=b'{"error": {"message": "overloaded"}}'), ASKED),
        (said(None, usage=40), 40),
        (said("  ", usage=40), 40),
        (said("", usage=40), 40),
        (said({"not": "text"}, usage=40), 40),
        (Reply(body=completion("hello"), promised=100_000), ASKED),
    ],
)
async def test_what_may_pass_is_asked_again_and_costs_what_it_cost(
    server: Scripted, model: Endpoint, sleeps: Sleeps, reply: Reply, tokens: int
) -> None:
    server.script(reply, reply, said("hello", usage=100))

    answer = await model.ask(ASK)

    assert (answer.text, answer.attempts, answer.tokens) == ("hello", 3, 2 * tokens + 100)
    assert 0 < sleeps.seconds[0] < sleeps.seconds[1]


@pytest.mark.parametrize(
    ("reply", "kind", "tokens"),
    [(declined(500, usage=7), ModelUnavailable, 7), (declined(429), ModelBusy, 0), (HTML, ModelUnavailable, ASKED)],
)
async def test_what_does_not_pass_ends_with_all_its_tokens(
    server: Scripted, model: Endpoint, reply: Reply, kind: type[ModelError], tokens: int
) -> None:
    server.script(reply)

    with pytest.raises(kind) as raised:
        await model.ask(ASK)

    assert len(server.requests) == ATTEMPTS
    assert raised.value.tokens == ATTEMPTS * tokens
    assert isinstance(raised.value, Transient)


@pytest.mark.parametrize(
    ("reply", "kind", "tokens"),
    [
        (declined(401, "bad key"), ModelDenied, 0),
        (declined(403), ModelDenied, 0),
        (declined(404, "no such model"), ModelInvalid, 0),
        (declined(413), AskTooLarge, 0),
        (declined(400, "This model's maximum context length is 8 tokens"), AskTooLarge, 0),
        (said(None, refusal="I cannot help with that", usage=12), Refused, 12),
        (said("", finish="content_filter", usage=13), Refused, 13),
    ],
)
async def test_what_will_not_pass_is_not_asked_again(
    server: Scripted, model: Endpoint, reply: Reply, kind: type[ModelError], tokens: int
) -> None:
    server.script(reply)

    with pytest.raises(kind) as raised:
        await model.ask(ASK)

    assert len(server.requests) == 1
    assert (isinstance(raised.value, Permanent), raised.value.tokens) == (True, tokens)


async def test_retry_after_is_honoured(server: Scripted, model: Endpoint, sleeps: Sleeps) -> None:
    server.script(declined(429, headers={"Retry-After": "7"}), said("hello"))

    await model.ask(ASK)

    assert sleeps.seconds == [7.0]


async def test_retry_after_beyond_the_deadline_is_not_waited_for(
    server: Scripted, model: Endpoint, sleeps: Sleeps
) -> None:
    server.script(declined(429, headers={"Retry-After": "3600"}))

    with pytest.raises(ModelBusy) as raised:
        await model.ask(ASK)

    assert (raised.value.retry_after_s, sleeps.seconds, len(server.requests)) == (3600.0, [], 1)


async def test_a_stall_ends(server: Scripted, sleeps: Sleeps) -> None:
    gate = threading.Event()
    server.script(Reply(body=completion("late"), gate=gate), said("hello", usage=10))
    model = Endpoint(server.url, MODEL, attempt_s=0.3, sleep=sleeps)
    try:
        answer = await model.ask(ASK)
    finally:
        gate.set()
        await model.close()

    assert (answer.text, answer.tokens) == ("hello", ASKED + 10)


async def test_a_slow_drip_ends_although_each_piece_comes_in_time(server: Scripted, sleeps: Sleeps) -> None:
    gone = threading.Event()

    def between() -> None:
        gone.wait(0.01)

    server.script(Reply(pieces=(b" ",) * 3_000, between=between))
    model = Endpoint(server.url, MODEL, attempt_s=0.3, deadline_s=0.5, sleep=sleeps)
    try:
        with pytest.raises(ModelTimeout) as raised:
            await model.ask(ASK)
    finally:
        gone.set()
        await model.close()

    assert raised.value.tokens > 0


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_is_not_read(server: Scripted, sleeps: Sleeps, status: int) -> None:
    sent = []

    def between() -> None:
        sent.append(1)

    server.script(Reply(pieces=(b" " * 65_536,) * 4_000, between=between, status=status))
    model = Endpoint(server.url, MODEL, sleep=sleeps)
    try:
        with pytest.raises(BadAnswer if status == 200 else ModelUnavailable) as raised:
            await model.ask(ASK)
    finally:
        await model.close()

    assert len(sent) < 4_000 * len(server.requests)
    assert raised.value.tokens == (ASKED + MAX_ANSWER_BYTES // 4 if status == 200 else 0)


async def test_nobody_listens(sleeps: Sleeps) -> None:
    model = Endpoint("http://127.0.0.1:9/v1", MODEL, sleep=sleeps)

    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9") as raised:
        await model.ask(ASK)

    assert raised.value.tokens == 0
    await model.close()


async def test_what_an_endpoint_does_not_know_is_left_out_for_good(server: Scripted, model: Endpoint) -> None:
    def decide(body: dict[str, Any]) -> Reply:
        for unknown in ("chat_template_kwargs", "response_format", "temperature", "max_tokens"):
            if unknown in body:
                return declined(400, f"unknown field {unknown}: use max_completion_tokens")
        return said("hello", usage=3)

    server.decide = decide

    first = await model.ask(ASK)
    refusals = len(server.requests) - 1
    second = await model.ask(ASK)

    assert (first.text, first.attempts, first.tokens) == ("hello", 1, 3)
    assert (second.text, len(server.requests)) == ("hello", refusals + 2)
    assert server.requests[-1]["max_completion_tokens"] == 50


async def test_an_endpoint_that_refuses_everything_is_told(server: Scripted, model: Endpoint) -> None:
    server.script(declined(400, "no"))

    with pytest.raises(ModelInvalid, match="400"):
        await model.ask(ASK)

    assert len(server.requests) < 10


async def test_lone_surrogates_do_not_get_through(server: Scripted, model: Endpoint) -> None:
    server.script(Reply(body=completion("a\ud800b")))

    assert (await model.ask(ASK)).text == "a\ufffdb"
