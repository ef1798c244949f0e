"""Vectors of texts: a packaged model, an endpoint, or none; one port.

Embedding(make)          .query(text) -> (identity, vector)   .passages(texts) -> rows   .why   .off
shared(config)           the one of this process
Model                    what an adapter is; its calls block, Embedding keeps them off the event loop
"""

from __future__ import annotations

from lamina.embedding.port import Model, Vectors, readable, unit
from lamina.embedding.source import Embedding, chosen, shared

__all__ = ["Embedding", "Model", "Vectors", "chosen", "readable", "shared", "unit"]
