"""Counts o200k tokens: exactly with the optional `bpe-openai`, else by a measured estimate that leans to more."""

from __future__ import annotations

from lamina.tokens.counting import count
from lamina.tokens.messages import MEDIA_TOKENS, count_message, count_messages

__all__ = ["MEDIA_TOKENS", "count", "count_message", "count_messages"]
