"""Any OpenAI-compatible `/v1/embeddings`, over the standard library's HTTP."""

from __future__ import annotations

import hashlib
import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

import msgspec

from lamina.embedding.port import Vectors, readable, unit
from lamina.errors import Busy, Denied, Invalid, TooLarge, Unavailable

FIRST_BATCH = 64
TIMEOUT_S = 20.0
PROBE = "probe"
MAX_ANSWER_BYTES = 64 * 1024 * 1024
_REFUSED_INPUT = (400, 413, 422)  # too many texts at once, or one that is too long


class _BrokeDown(Unavailable):
    """It answered 500: perhaps it cannot do this text, perhaps it cannot do anything."""


class Endpoint:
    """One model at one address. Making it asks for one vector, so what is wrong is said at once.

    A batch that is refused is halved, and the size that went through is kept. So is one on which the endpoint breaks
    down (500), until the text that does it is alone: if it answers for another one then, this text gets zeros.
    Nothing is retried here: whoever calls comes back after a pause.
    """

    def __init__(self, base_url: str, model: str, key: str = "", *, timeout_s: float = TIMEOUT_S) -> None:
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        self._key = key
        self._timeout_s = timeout_s
        self.dims = 0
        self.batch = FIRST_BATCH
        self.dims = int(self._asked([PROBE]).shape[1])
        name = re.sub(r"[^a-z0-9.]+", "-", model.lower()).strip("-.")[:60]
        where = hashlib.sha256(f"{self._url}\n{model}".encode()).hexdigest()[:8]
        self.identity = f"endpoint-{name}-{where}-{self.dims}"

    def passages(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        done: list[Vectors] = []
        left = [readable(text) or " " for text in texts]
        size = self.batch
        while left:
            now = left[:size]
            try:
                rows = self._asked(now)
            except (TooLarge, _BrokeDown) as error:
                if len(now) > 1:
                    size = len(now) // 2
                    self.batch = size if isinstance(error, TooLarge) else self.batch
                    continue
                if isinstance(error, _BrokeDown):
                    self._asked([PROBE])
                rows = np.zeros((1, self.dims), dtype=np.float32)  # this text alone is refused: for good
            done.append(rows)
            left = left[len(now) :]
            size = min(2 * size, self.batch)
        return np.concatenate(done) if done else np.zeros((0, self.dims), dtype=np.float32)

    def query(self, text: str) -> Vectors:
        vector: Vectors = self._asked([readable(text) or " "])[0]
        return vector

    def _asked(self, texts: Sequence[str]) -> Vectors:
        """The vectors of one request. `TooLarge` where the input is refused."""
        import numpy as np

        answer = self._sent(msgspec.json.encode({"model": self._model, "input": texts}))
        try:
            rows = sorted(msgspec.json.decode(answer, type=_Answer).data, key=lambda row: row.index)
            vectors = np.array([row.embedding for row in rows], dtype=np.float32)
        except (msgspec.MsgspecError, ValueError, UnicodeDecodeError) as error:
            raise Unavailable(f"{self._url} gave no embeddings: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise Unavailable(f"{self._url} gave {len(vectors)} vectors for {len(texts)} texts")
        if self.dims and vectors.shape[1] != self.dims:
            raise Unavailable(f"{self._url} gave vectors of {vectors.shape[1]} numbers, {self.dims} before")
        if not np.isfinite(vectors).all():
            raise Unavailable(f"{self._url} gave a vector that holds no numbers (NaN or infinite)")
        return unit(vectors)

    def _sent(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, data=body, headers=headers)  # noqa: S310 - http(s), checked
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:  # noqa: S310
                raw: bytes = answer.read(MAX_ANSWER_BYTES)
                return raw
        except urllib.error.HTTPError as error:
            with error:
                why = f"{self._url} answered {error.code}: {error.read(300).decode('utf-8', 'replace')}"
            raise _failure(error.code)(why) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable(f"{self._url} does not answer: {error}") from error


def _failure(code: int) -> type[Busy | Denied | Invalid | TooLarge | Unavailable]:
    if code in _REFUSED_INPUT:
        return TooLarge
    if code in (401, 403):
        return Denied
    if code == 429:
        return Busy
    if code == 500:
        return _BrokeDown
    return Invalid if code == 404 else Unavailable


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Answer(msgspec.Struct):
    data: list[_Row]


def reachable(config: Any, environ: Any) -> Endpoint:
    """The endpoint of a configuration; raises what making it raises, and `Invalid` without the key it names."""
    key = ""
    if config.api_key_env:
        key = environ.get(config.api_key_env, "")
        if not key:
            raise Invalid(f"embedding.api_key_env names {config.api_key_env}, which is not set where the daemon runs")
    return Endpoint(config.base_url, config.model, key)
