"""Models for tests: one that is scripted in the process, and an endpoint on loopback that misbehaves on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct, field

from lamina.llm import Answer, Ask, ModelError

MODEL = "scripted-1"


class Scripted:
    """A `Model` that says what it was told to, in order, the last for ever; an error is raised. `asked` keeps all."""

    def __init__(self, *says: str | Answer | ModelError, tokens: int = 100) -> None:
        self.name = MODEL
        self._says = list(says)
        self._tokens = tokens
        self.asked: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        says = self._says[min(len(self.asked), len(self._says) - 1)]
        self.asked.append(ask)
        if isinstance(says, ModelError):
            raise says
        return says if isinstance(says, Answer) else Answer(text=says, model=self.name, tokens=self._tokens)


class Reply(Struct, frozen=True, kw_only=True):
    """What the endpoint does with one request.

    `pieces` are sent one by one, `gate` is waited for before the first (a stall) and `between` before each later one
    (a slow drip). `promised` is a content length larger than what is sent, after which the connection is cut.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "application/json"
    pieces: tuple[bytes, ...] = ()
    gate: threading.Event | None = None
    between: Callable[[], None] | None = None
    promised: int | None = None


def completion(
    content: object, *, finish: str = "stop", usage: object = None, refusal: str | None = None, model: str = MODEL
) -> bytes:
    """A chat completion that says `content`."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    body: dict[str, Any] = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if usage is not None:
        body["usage"] = {"total_tokens": usage} if isinstance(usage, int) else usage
    return json.dumps(body).encode()


def said(content: object, **more: Any) -> Reply:
    return Reply(body=completion(content, **more))


def declined(status: int, message: str = "no", *, headers: dict[str, str] | None = None, usage: int = 0) -> Reply:
    body: dict[str, Any] = {"error": {"message": message, "type": "error", "code": None}}
    if usage:
        body["usage"] = {"total_tokens": usage}
    return Reply(body=json.dumps(body).encode(), status=status, headers=headers or {})


class Endpoint:
    """The scripted endpoint: `replies` are given in order, the last for ever. `requests` are the bodies it got.

    `decide`, where set, makes the reply from the body instead.
    """

    def __init__(self) -> None:
        self.url = ""
        self.replies: list[Reply] = []
        self.decide: Callable[[dict[str, Any]], Reply] | None = None
        self.models: Reply = Reply(body=json.dumps({"object": "list", "data": [{"id": MODEL}]}).encode())
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()

    def script(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def _next(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            at = min(len(self.requests), len(self.replies) - 1)
            self.requests.append(body)
            self.headers.append(headers)
            return self.decide(body) if self.decide is not None else self.replies[at]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: Endpoint

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""

    def do_GET(self) -> None:
        self._send(self.endpoint.models)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(self.endpoint._next(body, {key.lower(): value for key, value in self.headers.items()}))

    def _send(self, reply: Reply) -> None:
        pieces: Sequence[bytes] = reply.pieces or (reply.body,)
        length = sum(map(len, pieces)) if reply.promised is None else reply.promised
        try:
            if reply.gate is not None:
                reply.gate.wait(30)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.media_type)
            self.send_header("Content-Length", str(length))
            self.send_header("Connection", "close")
            for key, value in reply.headers.items():
                self.send_header(key, value)
            self.end_headers()
            for number, piece in enumerate(pieces):
                if number and reply.between is not None:
                    reply.between()
                self.wfile.write(piece)
                self.wfile.flush()
        except OSError:
            pass  # whoever asked has gone
        self.close_connection = True


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """A scripted endpoint on loopback for as long as the block lasts."""
    scripted = Endpoint()
    handler = type("Handler", (_Handler,), {"endpoint": scripted})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    scripted.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield scripted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
