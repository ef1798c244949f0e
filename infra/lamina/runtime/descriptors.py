"""How much of a home may be open at once: by the file descriptors that this process may have, and by memory."""

from __future__ import annotations

import contextlib
import resource

WANTED = 16_384
"""Descriptors that a daemon asks for, where it was started with fewer and may have more."""
FDS_PER_VIEW = 4
FDS_PER_READER = 3
MOST_VIEWS = 512
"""Of all services of a process: an open view costs some 0.4 MB, most of it its thread and SQLite's cache."""
MOST_READERS = 256
LEAST = 8


def raise_limit() -> None:
    """Let this process have as many descriptors as it wants, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= WANTED:
        return
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS may refuse what it says is allowed
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_views(services: int = 1) -> int:
    """How many views each of so many services of this process may have open: all take a quarter of the
    descriptors."""
    return max(LEAST, min(MOST_VIEWS, _quarter() // FDS_PER_VIEW) // max(1, services))


def most_readers() -> int:
    """How many views may be open for reading in this process: a quarter of the descriptors, too."""
    return max(LEAST, min(MOST_READERS, _quarter() // FDS_PER_READER))


def _quarter() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (WANTED if soft == resource.RLIM_INFINITY else soft) // 4
