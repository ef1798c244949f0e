"""How endpoints differ that all call themselves OpenAI-compatible, and what is tried when one refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from lamina.llm.port import Ask

Format: TypeAlias = Literal["schema", "object", "text"]
_REASONS = re.compile(r"(?:^|/)(?:o\d|gpt-5)", re.IGNORECASE)
_DISABLED: Mapping[str, Any] = {"thinking": {"type": "disabled"}}
_UNTHINKING: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("dashscope.aliyuncs.com", {"enable_thinking": False}),
    ("dashscope-intl.aliyuncs.com", {"enable_thinking": False}),
    ("siliconflow.cn", {"enable_thinking": False}),
    ("siliconflow.com", {"enable_thinking": False}),
    ("deepseek.com", _DISABLED),
    ("moonshot.cn", _DISABLED),
    ("moonshot.ai", _DISABLED),
    ("bigmodel.cn", _DISABLED),
    ("z.ai", _DISABLED),
    ("volces.com", _DISABLED),
    ("anthropic.com", _DISABLED),
    ("openrouter.ai", {"reasoning": {"enabled": False}}),
    ("googleapis.com", {"reasoning_effort": "none"}),
    ("groq.com", {}),
    ("mistral.ai", {}),
    ("openai.azure.com", {}),
)
_SELF_HOSTED: Mapping[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
"""vLLM, SGLang and llama.cpp take it; others pass over a key they do not know."""


class Dialect(Struct, frozen=True, kw_only=True):
    """What is sent beside the question. Each step down gives up what an endpoint may not know."""

    unthinking: Mapping[str, Any]
    format: Format = "schema"
    limit: str = "max_tokens"
    swapped: bool = False
    """Has the other name of the limit been tried before?"""
    temperature: bool = True

    def parameters(self, ask: Ask) -> dict[str, Any]:
        """The body of a request beside model and messages."""
        body: dict[str, Any] = {self.limit: ask.max_tokens, **self.unthinking}
        if self.temperature:
            body["temperature"] = 0
        if self.format == "schema":
            schema = {"name": ask.name, "strict": True, "schema": dict(ask.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.format == "object":
            body["response_format"] = {"type": "json_object"}
        return body

    def simpler(self, refusal: str) -> Dialect | None:
        """What to try after a request was refused with this text; None where nothing is left to give up.

        What the refusal names goes first; else thinking, then the form of the answer.
        """
        said = refusal.lower()
        other = "max_tokens" if self.limit == "max_completion_tokens" else "max_completion_tokens"
        if other in said and not self.swapped:
            return replace(self, limit=other, swapped=True)
        if "temperature" in said and self.temperature:
            return replace(self, temperature=False)
        if self.format != "text" and ("response_format" in said or "schema" in said or "json_object" in said):
            return self._looser()
        if self.unthinking:
            return replace(self, unthinking={})
        return self._looser() if self.format != "text" else None

    def _looser(self) -> Dialect:
        return replace(self, format="object" if self.format == "schema" else "text")


def of(base_url: str, model: str) -> Dialect:
    """The dialect to begin with at this address: thinking is switched off in the way its vendor documents."""
    host = urlsplit(base_url).hostname or ""
    if _under(host, "api.openai.com"):
        if not _REASONS.search(model):
            return Dialect(unthinking={})
        effort = "minimal" if re.search(r"gpt-5(?:-|$)", model, re.IGNORECASE) else "low"
        effort = "none" if re.search(r"gpt-5\.\d", model, re.IGNORECASE) else effort
        return Dialect(unthinking={"reasoning_effort": effort}, limit="max_completion_tokens", temperature=False)
    for known, unthinking in _UNTHINKING:
        if _under(host, known):
            return Dialect(unthinking=unthinking)
    return Dialect(unthinking=_SELF_HOSTED)


def _under(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")
