"""Logging: structlog, JSON lines on stderr (text on a terminal); ids and sizes, never user text.

structlog takes a tenth of a second to load and most processes never log, so it is loaded at the first word.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_level = "warning"
_configured = False


def configure(level: str = "warning") -> None:
    """What this process logs from now on; called in `main`. `level` is one of debug, info, warning, error."""
    global _level, _configured
    _level, _configured = level, False


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
            _set_up()
            import structlog

            structlog.get_logger().log(LEVELS[level], event, **data)


def get_logger() -> Logger:
    return Logger()


def _set_up() -> None:
    global _configured
    if _configured:
        return
    import structlog

    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer()
    if sys.stderr.isatty():  # plain: a pretty traceback shows local variables, credentials among them
        renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[_level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    _configured = True
