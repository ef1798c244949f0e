"""Is a daemon running on a home? What its files say is checked against what the kernel knows."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamina.home import Home, Runtime


def running(home: Home) -> Runtime | None:
    """The daemon of `home`, or None.

    A runtime file whose process number was given to some other program meanwhile is none: nobody holds the lock.
    """
    runtime = home.runtime()
    return runtime if runtime is not None and locked(home.run / "daemon.lock") else None


def locked(path: Path) -> bool:
    """Does some process hold the lock on this file now?"""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
