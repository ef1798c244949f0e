"""Logging: structlog, JSON lines on stderr (text on a terminal); ids and sizes, never user text.

structlog takes a tenth of a second to load and most processes never log, so it is loaded at the first word.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from typing import Any, TextIO, cast

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_level = "warning"
_made_once: Any = None


def configure(level: str = "warning") -> None:
    """What this process logs from now on; called in `main`. `level` is one of debug, info, warning, error."""
    global _level, _made_once
    _level, _made_once = level, None


class Logger:
    """A structlog logger: an event in snake case, data in keys."""

    def debug(self, event: str, **data: Any) -> None:
        self._say("debug", event, data)

    def info(self, event: str, **data: Any) -> None:
        self._say("info", event, data)

    def warning(self, event: str, **data: Any) -> None:
        self._say("warning", event, data)

    def error(self, event: str, **data: Any) -> None:
        self._say("error", event, data)

    def exception(self, event: str, **data: Any) -> None:
        """An error, with the traceback of the exception that is being handled."""
        self._say("error", event, {"exc_info": True, **data})

    def _say(self, level: str, event: str, data: dict[str, Any]) -> None:
        if LEVELS[level] >= LEVELS[_level]:
            global _made_once
            if _made_once is None:
                _made_once = _made()
            _made_once.log(LEVELS[level], event, **data)


class _Lossy(io.TextIOBase):
    """A stream that loses a line rather than its process: a full disk must not end a daemon that could wait."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


def get_logger() -> Logger:
    return Logger()


def _made() -> Any:
    """A logger of our own: the structlog settings of a host program that uses the client are left alone."""
    import structlog

    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer()
    if sys.stderr.isatty():  # plain: a pretty traceback shows local variables, credentials among them
        renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.wrap_logger(
        structlog.PrintLogger(cast(TextIO, _Lossy(sys.stderr))),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[_level]),
    )
