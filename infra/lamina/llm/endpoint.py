"""Any OpenAI-compatible endpoint, through the `openai` package: one question, retried within one deadline."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from lamina.llm import dialect, wire
from lamina.llm.errors import (
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
from lamina.llm.port import Answer, Ask
from lamina.log import get_logger
from lamina.tokens import count

DEADLINE_S = 120.0
ATTEMPT_S = 60.0
"""One attempt: a stalled endpoint leaves time for another."""
ATTEMPTS = 4
PAUSE_S = 0.5
"""Before the second attempt; doubled before each later one."""
MAX_REFUSAL_BYTES = 4096
_REFUSED_INPUT = (400, 404, 405, 413, 415, 422)
_TOO_LONG = ("context length", "context_length", "maximum context", "too long", "too many tokens", "context window")
log = get_logger()


class _Declined(Exception):
    """An answer with a status of failure, its body bounded."""

    def __init__(self, status: int, body: bytes, retry_after_s: float) -> None:
        super().__init__(f"HTTP {status}: {wire.shown(body)}")
        self.status = status
        self.body = body
        self.retry_after_s = retry_after_s


class _BrokenOff(Exception):
    """The connection could not be made or did not hold. What lies at the bottom is told: the package says no more
    than "Connection error"."""

    def __init__(self, error: BaseException) -> None:
        chain = [error]
        while (cause := chain[-1].__cause__) is not None:
            chain.append(cause)
        super().__init__(f"{type(chain[-1]).__name__}: {chain[-1]}")
        self.before_it_was_sent = any(type(one).__name__ == "ConnectError" for one in chain)


class Endpoint:
    """One model at one address. Belongs to the event loop that first asks it; `close` ends its connections.

    Tokens are those the endpoint says it used. Where an attempt fails without a word on them, those of the question
    count if the endpoint may have worked on it: it timed out, broke off, or sent what is no answer.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        key: str = "",
        *,
        deadline_s: float = DEADLINE_S,
        attempt_s: float = ATTEMPT_S,
        pause_s: float = PAUSE_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = model
        self._url = base_url
        self._key = key
        self._deadline_s = deadline_s
        self._attempt_s = attempt_s
        self._pause_s = pause_s
        self._sleep = sleep
        self._dialect = dialect.of(base_url, model)
        self._client: Any = None
        self._openai: ModuleType | None = None

    async def ask(self, ask: Ask) -> Answer:
        spent = attempts = 0
        loop = asyncio.get_running_loop()
        end = loop.time() + self._deadline_s
        while True:
            attempts += 1
            try:
                answer = await self._attempt(ask, min(self._attempt_s, end - loop.time()))
            except ModelError as error:
                error.tokens = spent = spent + error.tokens
                pause_s = self._pause(error, attempts)
                if pause_s is None or loop.time() + pause_s >= end:
                    raise
                log.info("model_asked_again", seconds=round(pause_s, 1), error=str(error))
                await self._sleep(pause_s)
            else:
                return Answer(
                    text=answer.text,
                    model=answer.model or self.name,
                    tokens=spent + (answer.tokens or 0),
                    cut=answer.finish == "length",
                    attempts=attempts,
                )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _pause(self, error: ModelError, attempts: int) -> float | None:
        """How long to wait before the same is asked again; None where it is not."""
        if attempts >= ATTEMPTS or not isinstance(error, ModelUnavailable | ModelTimeout | ModelBusy):
            return None
        own: float = self._pause_s * 2 ** (attempts - 1) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
        asked_for = error.retry_after_s if isinstance(error, ModelBusy) else 0.0
        return max(own, asked_for)

    async def _attempt(self, ask: Ask, seconds: float) -> wire.Said:
        """One answer, with its tokens, or the error that says what came instead."""
        asked = count(ask.system) + count(ask.user)
        client = await self._connected()
        try:
            async with asyncio.timeout(seconds):
                raw = await self._accepted(client, ask)
        except TimeoutError as error:
            raise ModelTimeout(f"{self._url} did not answer within {seconds:.0f} s", asked) from error
        except _BrokenOff as error:
            cost = 0 if error.before_it_was_sent else asked
            raise ModelUnavailable(f"{self._url} does not answer: {error}", cost) from error
        return self._read(raw, asked)

    async def _accepted(self, client: Any, ask: Ask) -> bytes:
        """The body of an answer of success: what the endpoint refuses to know is left out, from then on."""
        while True:
            begun = self._dialect
            try:
                return await self._sent(client, ask)
            except _Declined as refusal:
                simpler = begun.simpler(wire.shown(refusal.body)) if refusal.status in (400, 422) else None
                if simpler is None or _too_long(refusal.body):
                    raise _failure(refusal, self._url, wire.spent(refusal.body) or 0) from refusal
                if self._dialect == begun:  # another question may have found out meanwhile
                    self._dialect = simpler
                log.info("model_asked_simpler", format=simpler.format, error=str(refusal))

    async def _sent(self, client: Any, ask: Ask) -> bytes:
        """The body of one answer of success; raises `_Declined`, `_BrokenOff` or `TimeoutError`."""
        messages = [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}]
        assert self._openai is not None  # noqa: S101 - there is a client
        http = _http(self._openai)
        call = client.chat.completions.with_streaming_response.create(
            model=self.name,
            messages=messages,
            extra_body=self._dialect.parameters(ask),
            extra_headers={} if self._key else {"Authorization": self._openai.Omit()},
        )
        raw = bytearray()
        try:
            async with call as response:
                async for chunk in response.iter_bytes():
                    raw += chunk
                    if len(raw) > wire.MAX_ANSWER_BYTES:
                        break
        except (self._openai.APITimeoutError, http.TimeoutException) as error:
            raise TimeoutError from error
        except (
            self._openai.OpenAIError,
            http.HTTPError,
            http.StreamError,
            OSError,
            ValueError,
            RuntimeError,
        ) as error:
            if isinstance(error.__cause__, _Declined):
                raise error.__cause__ from None
            raise _BrokenOff(error) from error
        return bytes(raw)

    def _read(self, raw: bytes, asked: int) -> wire.Said:
        """The answer, if it is one; else the error that says what it is."""
        if len(raw) > wire.MAX_ANSWER_BYTES:
            cost = asked + wire.MAX_ANSWER_BYTES // 4
            raise BadAnswer(f"{self._url} answered more than {wire.MAX_ANSWER_BYTES} bytes", cost)
        try:
            said = wire.read(raw)
        except wire.NotAnAnswer as error:
            tokens = wire.spent(raw)
            raise ModelUnavailable(f"{self._url} gave {error}", asked if tokens is None else tokens) from error
        tokens = asked + count(said.text) if said.tokens is None else said.tokens
        if said.refusal or said.finish == "content_filter":
            why = said.refusal or "its content filter"
            raise Refused(f"{self.name} will not answer this: {why}", tokens)
        if not said.text.strip():
            if said.finish == "length":
                raise BadAnswer(f"{self.name} used up its tokens without an answer (thinking?)", tokens)
            raise ModelUnavailable(f"{self._url} gave an empty answer", tokens)
        return wire.Said(text=said.text, finish=said.finish, model=said.model, tokens=tokens)

    async def _connected(self) -> Any:
        if self._client is None:
            # importing takes half a second, in which the loop has other things to do
            self._openai = await asyncio.to_thread(_package)
            self._client = _client(self._openai, self._url, self._key, self._attempt_s)
        return self._client


def _package() -> ModuleType:
    try:
        import openai
    except ImportError as error:
        raise ModelInvalid("the section [llm] needs the package openai: pip install 'lamina[llm]'") from error
    return openai


def _http(openai: ModuleType) -> ModuleType:
    """The HTTP package below `openai`, which is another in another version of it."""
    name: str = openai.DefaultAsyncHttpxClient.__base__.__module__
    return sys.modules[name.partition(".")[0]]


def _client(openai: ModuleType, url: str, key: str, timeout_s: float) -> Any:
    http = openai.DefaultAsyncHttpxClient(event_hooks={"response": [_bounded]})
    headers: dict[str, Any] = {"Accept-Encoding": "identity"}
    # what the environment says of the hosted service is not for this address
    omitted = ("OpenAI-Organization", "OpenAI-Project")
    return openai.AsyncOpenAI(
        base_url=url,
        api_key=key or "none",  # the package insists on one
        organization="",
        project="",
        max_retries=0,
        timeout=timeout_s,
        http_client=http,
        default_headers=headers | dict.fromkeys(omitted, openai.Omit()),
    )


async def _bounded(response: Any) -> None:
    """A refusal is read here, so that it cannot be larger than a message needs."""
    if response.is_success or response.has_redirect_location:
        return
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_REFUSAL_BYTES:
            break
    later = wire.retry_after_s(response.headers, time.time())
    raise _Declined(response.status_code, bytes(body), later)


def _failure(refusal: _Declined, url: str, tokens: int) -> ModelError:
    """The typed error of a status."""
    why = f"{url} answered {refusal.status}: {wire.shown(refusal.body)}"
    status = refusal.status
    if status == 413 or (status in _REFUSED_INPUT and _too_long(refusal.body)):
        return AskTooLarge(why, tokens)
    if status == 429:
        return ModelBusy(why, tokens, refusal.retry_after_s)
    if status == 503 and refusal.retry_after_s:
        return ModelBusy(why, tokens, refusal.retry_after_s)
    if status in (401, 403):
        return ModelDenied(why, tokens)
    if status in _REFUSED_INPUT:
        return ModelInvalid(why, tokens)
    return ModelUnavailable(why, tokens)


def _too_long(body: bytes) -> bool:
    said = wire.shown(body).lower()
    return any(words in said for words in _TOO_LONG)
