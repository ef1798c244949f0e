"""Check of the model that reads what was said, where one is configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lamina.cli.doctor.finding import Finding, broken, ok, warning
from lamina.config import Config
from lamina.errors import Permanent, Unavailable
from lamina.llm.probe import probe


def findings(config: Config | None, environ: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """Nothing where no model is configured: the built-in rules need none."""
    if config is None or not config.llm.base_url:
        return
    try:
        yield ok("llm", probe(config.llm, environ))
    except Permanent as error:
        yield broken("llm", str(error), "mend the section [llm] of config.toml, or the environment of the daemon")
    except Unavailable as error:
        yield warning("llm", str(error), "start the endpoint; what was said waits until it answers")
