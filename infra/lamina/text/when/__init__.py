"""When: the time phrases of a sentence in four languages, as the days they mean."""

from __future__ import annotations

from lamina.text.when.phrases import MAX_PHRASES, find, is_settled, resolved, validity
from lamina.text.when.spans_of_time import When

__all__ = ["MAX_PHRASES", "When", "find", "is_settled", "resolved", "validity"]
