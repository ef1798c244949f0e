"""Whose vectors answer for a space: the configured model's, or an earlier one's until the new ones are whole."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lamina.embedding import Embedding, shared
from lamina.errors import LaminaError, Unavailable
from lamina.runtime.embedcache import cache_path, made_by, was_complete


async def answering(space_root: Path, current: Embedding) -> Embedding:
    """`current`, unless its vectors of this space are not whole yet and those of an earlier model are that can still
    be asked."""
    if current.off:
        return current
    caches = sorted((space_root / "cache").glob("embeddings-*.db"))
    try:
        own = cache_path(space_root, await current.identity())
    except Unavailable:  # what its vectors are called is not known; those of an earlier model may do
        own = None
    others = [path for path in caches if path != own]
    if not others or (own in caches and await asyncio.to_thread(_whole, own)):
        return current
    for path in others:
        earlier = await _maker(path)
        if earlier is not None and earlier is not current:
            return earlier
    return current


async def _maker(path: Path) -> Embedding | None:
    """The source that made the vectors at `path`, if they are whole and it answers with the same model now."""
    if not await asyncio.to_thread(_whole, path):
        return None
    config = await asyncio.to_thread(made_by, path)
    if config is None:
        return None
    source = shared(config)
    try:
        return source if cache_path(path.parent.parent, await source.identity()) == path else None
    except Unavailable:
        return None


def _whole(path: Path) -> bool:
    try:
        return was_complete(path)
    except LaminaError:  # a broken file holds nothing that could answer; the embed loop makes it anew
        return False
