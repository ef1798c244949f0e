"""Is a daemon running on a home? What its files say is checked against what the kernel knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamina.home import Home, Runtime


def running(home: Home) -> Runtime | None:
    """The daemon of `home`, or None.

    A runtime file whose process number was given to some other program meanwhile is none: nobody holds the lock.
    """
    from lamina.home import held

    runtime = home.runtime()
    return runtime if runtime is not None and held(home.daemon_lock) else None
