"""The model of a configuration, one in each process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lamina.config import LlmConfig
from lamina.errors import Invalid
from lamina.llm.budget import Meter
from lamina.llm.endpoint import Endpoint
from lamina.llm.port import Model


class Source:
    """The configured model, its budget, and what was spent of it. `model` is None where none is configured."""

    def __init__(self, config: LlmConfig, model: Model | None) -> None:
        self.config = config
        self.model = model
        self.meter = Meter()


def model_of(config: LlmConfig, environ: Mapping[str, str] | None = None) -> Endpoint | None:
    """The model that is configured, if one is. `Invalid` where the key it names is not in the environment."""
    if not config.base_url:
        return None
    return Endpoint(config.base_url, config.model, key_of(config, environ))


def key_of(config: LlmConfig, environ: Mapping[str, str] | None = None) -> str:
    """The key of the endpoint, empty where it needs none; `Invalid` where it is not in the environment."""
    key = ""
    if config.api_key_env:
        key = (os.environ if environ is None else environ).get(config.api_key_env, "").strip()
        if not key:
            raise Invalid(f"llm.api_key_env names {config.api_key_env}, which is not set where the daemon runs")
        if not key.isascii() or not key.isprintable():
            raise Invalid(f"{config.api_key_env} holds characters that no key has")
    return key


_shared: dict[LlmConfig, Source] = {}


def shared(config: LlmConfig) -> Source:
    """The source of this configuration in this process: all spaces draw on one budget."""
    if config not in _shared:
        _shared[config] = Source(config, model_of(config))
    return _shared[config]
