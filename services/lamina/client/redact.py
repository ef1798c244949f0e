"""Redaction: what matches `[offload] redact` never leaves the client, in results and in the arguments of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

MARK = "[redacted]"


class Redactor:
    """Replaces every match of its patterns by `[redacted]`; without patterns it gives back what it is given."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def text(self, value: str | bytes) -> str | bytes:
        """Text without its secrets; bytes that are no UTF-8 are left alone, since they hold no text to match."""
        if not self._patterns or not isinstance(value, str | bytes):
            return value
        if isinstance(value, str):
            return self._without(value)
        try:
            return self._without(value.decode()).encode()
        except UnicodeDecodeError:
            return value

    def value(self, value: Any) -> Any:
        """The same for every text inside a JSON value, keys left as they are."""
        if not self._patterns:
            return value
        if isinstance(value, str):
            return self._without(value)
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _without(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(MARK, text)
        return text
