"""Is the configured endpoint there, and does it have the model? For whoever looks for trouble."""

from __future__ import annotations

import http.client
import importlib.util
import urllib.error
import urllib.request
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from lamina.config import LlmConfig
from lamina.llm.errors import ModelDenied, ModelInvalid, ModelUnavailable
from lamina.llm.source import key_of
from lamina.llm.wire import MAX_ANSWER_BYTES, shown

TIMEOUT_S = 5.0


class _Listed(Struct):
    id: str


class _Models(Struct):
    data: list[_Listed]


def probe(config: LlmConfig, environ: Mapping[str, str] | None = None, *, timeout_s: float = TIMEOUT_S) -> str:
    """What was found at the endpoint, without asking the model anything.

    `Invalid` where the set-up must change: the key or the package is missing, the model is not listed; `Denied`
    where the key is not taken; `Unavailable` where nothing answers. An endpoint that keeps no list is well.
    """
    key = key_of(config, environ)
    if importlib.util.find_spec("openai") is None:
        raise ModelInvalid("the package openai is not installed: pip install 'lamina[llm]'")
    url = f"{config.base_url.rstrip('/')}/models"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http(s), checked
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
            raw = answer.read(MAX_ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (401, 403):
                raise ModelDenied(f"{url} answered {error.code}: the key is not taken") from error
            if error.code in (404, 405):
                return f"{config.base_url} answers, and keeps no list of models"
            raise ModelUnavailable(f"{url} answered {error.code}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ModelUnavailable(f"{url} does not answer: {error}") from error
    return _listed(config, url, raw)


def _listed(config: LlmConfig, url: str, raw: bytes) -> str:
    try:
        names = [model.id for model in msgspec.json.decode(raw, type=_Models).data]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ModelUnavailable(f"{url} is no list of models: {shown(raw)}") from error
    # some vendors list "models/NAME", and local servers the path of the file they were given
    if names and not any(name == config.model or name.endswith(f"/{config.model}") for name in names):
        few = ", ".join(names[:5])
        raise ModelInvalid(f"{url} does not list {config.model}; it has {few}{' and more' if len(names) > 5 else ''}")
    return f"{config.model} at {config.base_url}"
