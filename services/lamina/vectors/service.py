"""The vectors as a service: wiring alone."""

from __future__ import annotations

from msgspec.structs import replace

from lamina.config import Config
from lamina.runtime import Service
from lamina.vectors.fold import TABLES, VERSION, State, fold, needs


def service() -> Service[State]:
    """The `vectors` service, for the entry-point group `lamina.services`."""
    return Service(
        name="vectors",
        version=VERSION,
        tables=TABLES,
        state=State,
        fold=fold,
        needs=needs,
        embeds="texts",
        configure=_configured,
    )


def _configured(config: Config) -> Service[State]:
    embedding = config.embedding
    if embedding.provider != "endpoint" or not embedding.tokens_per_day:
        return service()
    return replace(
        service(), single="embedding.tokens_per_day is counted in its process, and two would send twice that"
    )
