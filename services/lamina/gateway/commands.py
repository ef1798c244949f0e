"""The verb `serve`."""

from __future__ import annotations

import argparse
import os
import socket
import ssl
from ipaddress import ip_address

from msgspec import Struct

from lamina.cli.command import DONE, Command, Context
from lamina.errors import Denied, Invalid, Unavailable

LISTEN = "127.0.0.1:7340"
STOP_S = 5


class Serving(Struct, frozen=True):
    """Where it listens, and the process."""

    url: str
    pid: int


def _run(context: Context, options: argparse.Namespace) -> int:
    host, port = address(options.listen)
    token = _token(options.token_env)
    local = _is_loopback(host)
    if bool(options.tls_cert) != bool(options.tls_key):
        raise Invalid("--tls-cert and --tls-key are given together, or neither")
    if not local and not (options.tls_cert and token):
        raise Invalid(
            f"{host} can be reached from other machines: give --tls-cert, --tls-key and --token-env, "
            "or listen on 127.0.0.1"
        )
    try:
        import uvicorn

        from lamina.gateway.app import LOOPBACK, application
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed: pip install 'lamina[serve]'") from error
    hosts = LOOPBACK if local else ()
    config = uvicorn.Config(
        application(context.home, token=token, hosts=hosts),
        host=host,
        port=port,
        ssl_certfile=options.tls_cert or None,
        ssl_keyfile=options.tls_key or None,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=16 * 1024,
        limit_concurrency=64,
    )
    return _serve(context, config, "https" if options.tls_cert else "http")


def _serve(context: Context, config: object, scheme: str) -> int:
    import asyncio

    import uvicorn

    assert isinstance(config, uvicorn.Config)  # noqa: S101 - made above; the type cannot be named without loading it
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise Denied(f"the certificate and key cannot be used: {error}") from error
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
        listening.listen(128)  # whoever reads the line below may ask at once
    except OSError as error:
        listening.close()
        raise Unavailable(f"{config.host}:{config.port} cannot be listened on: {error.strerror}") from error
    name = f"[{config.host}]" if family == socket.AF_INET6 else config.host
    url = f"{scheme}://{name}:{listening.getsockname()[1]}"
    if context.json:
        context.document(Serving(url, os.getpid()))
    else:
        context.line(f"{url}/readyz /metrics /status of {context.home.path}; Ctrl-C ends it")
    with listening:
        asyncio.run(_until_signal(config, listening))
    return DONE


async def _until_signal(config: object, listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, which are a clean end here; uvicorn would raise them again."""
    import asyncio
    import contextlib
    import signal

    import uvicorn

    assert isinstance(config, uvicorn.Config)  # noqa: S101 - the same

    class Server(uvicorn.Server):
        def capture_signals(self) -> contextlib.nullcontext[None]:  # type: ignore[override]  # nothing to give back
            return contextlib.nullcontext()

    server = Server(config)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    await server.serve(sockets=[listening])


def address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; `Invalid` for anything else. Port 0 lets the system choose."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise Invalid(f"--listen must be HOST:PORT, such as {LISTEN}, not {text[:80]!r}")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _token(variable: str | None) -> str:
    if not variable:
        return ""
    token = os.environ.get(variable, "")
    if not token:
        raise Invalid(f"the environment variable {variable} holds no token")
    return token


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", default=LISTEN, help=f"where (default: {LISTEN})")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain, PEM; needed off loopback")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key, PEM")
    parser.add_argument(
        "--token-env", metavar="NAME", help="environment variable with the bearer token that every request must carry"
    )


serve = Command(
    name="serve",
    help="answer HTTP: health, readiness, status, Prometheus metrics",
    description="Serve /livez, /readyz (503 while something stalls, with the reason), /status and /metrics of a home "
    "over HTTP. It listens on loopback; anywhere else it asks for TLS and a token. Needs the extra `serve`.",
    run=_run,
    configure=_options,
    examples=(
        "lamina serve                         # http://127.0.0.1:7340/metrics",
        "lamina serve --listen 127.0.0.1:0 --json",
        "lamina serve --listen 0.0.0.0:7340 --tls-cert c.pem --tls-key k.pem --token-env LAMINA_SERVE_TOKEN",
    ),
    outputs={"serve": Serving},
)
