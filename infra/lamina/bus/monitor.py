"""The monitoring port of a nats-server: a few bytes of HTTP over loopback."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import msgspec

from lamina.errors import Timeout, Unavailable

ANSWER_S = 2.0


async def monitored(url: str, path: str) -> dict[str, Any]:
    """The JSON object that the server tells at `path`; `Unavailable` when it does not."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            try:
                writer.write(f"GET {path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
                answer = await reader.read()
            finally:
                writer.close()
        found: dict[str, Any] = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2], type=dict[str, Any])
    except TimeoutError as error:
        raise Timeout(f"the server's monitor at {url} did not answer within {ANSWER_S} s") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise Unavailable(f"the server's monitor at {url} does not answer: {error!r}") from error
    return found


async def wait_ready(url: str, child: asyncio.subprocess.Process) -> None:
    """Return once JetStream of this child is up; `Unavailable` when the child ends before. No deadline of its own."""
    while child.returncode is None:
        try:
            if (await monitored(url, "/healthz?js-enabled-only=true")).get("status") == "ok":
                return
        except (Unavailable, Timeout):
            pass  # not listening yet
        await asyncio.sleep(0.01)
    raise Unavailable(f"nats-server ended with code {child.returncode} while it was starting")
