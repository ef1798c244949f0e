"""The HTTP application: the state of a home for supervisors, Prometheus and people. It changes nothing.

`GET /livez` 200 while this process answers; `/readyz` 200 or 503 with the faults; `/metrics` for Prometheus;
`/status` what `lamina status --json` prints.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec
from litestar import Litestar, MediaType, Response, get
from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers import BaseRouteHandler
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from lamina.cli.state import Status, look
from lamina.gateway.exposition import exposition
from lamina.gateway.health import Health, Watch, judged
from lamina.home import Home

LOOPBACK = ("localhost", "127.0.0.1", "::1")
FRESH_S = 1.0
"""Whoever asks again within this time gets the same look: a flood of questions costs one look a second."""


class Lookout:
    """Looks at a home when asked, and remembers where everything stood."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = asyncio.Lock()
        self._watch = Watch()
        self._at_s = float("-inf")
        self._found: tuple[Status, Health] | None = None

    async def look(self) -> tuple[Status, Health]:
        async with self._lock:
            now_s = time.monotonic()
            if self._found is None or now_s - self._at_s >= FRESH_S:
                status = await look(self._home)
                self._watch, health = judged(self._watch, status, now_s)
                self._at_s, self._found = now_s, (status, health)
            return self._found


def application(home: Home, *, token: str = "", hosts: Sequence[str] = LOOPBACK) -> Litestar:
    """The application over `home`. With `token` every path but /livez asks for it (`Authorization: Bearer`).

    Requests that name a host that is none of `hosts` (empty: any) are refused, so that a web page cannot reach it
    through a name of its own.
    """
    lookout = Lookout(home)

    @get("/livez", media_type=MediaType.TEXT, opt={"open": True})
    async def live() -> str:
        return "ok\n"

    @get("/readyz")
    async def ready() -> Response[bytes]:
        _, health = await lookout.look()
        return _json(health, 200 if health.status == "green" else 503)

    @get("/status")
    async def status() -> Response[bytes]:
        found, _ = await lookout.look()
        return _json(found, 200)

    @get("/metrics")
    async def metrics() -> Response[bytes]:
        found, health = await lookout.look()
        return Response(exposition(found, health), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    def permitted(connection: ASGIConnection, handler: BaseRouteHandler) -> None:  # type: ignore[type-arg]  # as Litestar has it
        if hosts and _hostname(connection.headers.get("host", "")) not in hosts:
            raise PermissionDeniedException(f"this is none of {', '.join(hosts)}")
        given = connection.headers.get("authorization", "").encode("latin-1", "replace")  # as it came
        if token and not handler.opt.get("open") and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            raise NotAuthorizedException("a bearer token is needed")

    return Litestar([live, ready, status, metrics], guards=[permitted], openapi_config=None, logging_config=None)


def _hostname(header: str) -> str:
    """The name in a Host header, without its port; empty where it is none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _json(value: object, code: int) -> Response[bytes]:
    return Response(msgspec.json.encode(value), status_code=code, media_type=MediaType.JSON)
