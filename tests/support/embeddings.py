"""Vectors without a model: words hashed into dimensions, deterministic; and an endpoint that gives them, or fails."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from lamina.embedding import Vectors, unit
from lamina.text import terms

DIMS = 64


def hashed(texts: Sequence[str], dims: int = DIMS) -> Vectors:
    """One row a text; texts with words in common are near."""
    rows = np.zeros((len(texts), dims), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for term in ["", *terms(text)]:
            digest = hashlib.sha256(term.encode("utf-8", "replace")).digest()
            row[int.from_bytes(digest[:4], "big") % dims] += 1 if digest[4] % 2 else -1
    return unit(rows)


class Hashing:
    """A `Model` for tests; `asked` counts its texts."""

    def __init__(self, dims: int = DIMS) -> None:
        self.identity = f"hashing-{dims}"
        self.dims = dims
        self.batch = 8
        self.asked = 0

    def passages(self, texts: Sequence[str]) -> Vectors:
        self.asked += len(texts)
        return hashed(texts, self.dims)

    def query(self, text: str) -> Vectors:
        row: Vectors = hashed([text], self.dims)[0]
        return row


class Fake:
    """What the endpoint does now. `most`: more texts at once are refused; `refuse`: as is a text that holds this;
    `breaks`: such a text makes it answer 500. `down` and `held` are models: one answers 503, the other waits at the
    gate with all but the probe."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.dims = DIMS
        self.most = 1_000
        self.refuse = ""
        self.breaks = ""
        self.down = ""
        self.held = ""
        self.nan = False
        self.raw: bytes | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.requests = 0
        self.texts = 0
        self.keys: list[str] = []

    def answer(self, body: bytes) -> tuple[int, bytes]:
        asked = json.loads(body)
        texts, model = asked["input"], asked["model"]
        self.requests += 1
        if model == self.down:
            return 503, b'{"error": "down"}'
        if not self.held or (model == self.held and texts != ["probe"]):
            self.gate.wait(30)
        if self.status != 200:
            return self.status, b'{"error": "told to"}'
        if len(texts) > self.most or (self.refuse and any(self.refuse in text for text in texts)):
            return 400, b'{"error": "too much"}'
        if self.breaks and any(self.breaks in text for text in texts):
            return 500, b'{"error": "out of order"}'
        if self.raw is not None:
            return 200, self.raw
        self.texts += len(texts)
        rows = hashed(texts, self.dims).tolist()
        if self.nan:
            rows[0][0] = float("nan")
        data = [{"index": n, "embedding": row} for n, row in enumerate(rows)]
        return 200, json.dumps({"data": data[::-1]}).encode()


@contextmanager
def endpoint() -> Iterator[Fake]:
    """A server on a port of its own until the block ends."""
    fake = Fake()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fake.keys.append(self.headers.get("Authorization", ""))
            status, body = fake.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Tests print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield fake
    finally:
        fake.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
