"""Operating-system facts about a child process: that it dies with us, and that an old one is found and ended."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lamina.errors import Busy

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> Callable[[], None] | None:
    """What a child must do before it runs, so that Linux ends it when we die; None where there is no such thing
    (there a stale child is found and ended at the next start)."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # found before the fork: after it nothing may be allocated that others hold
    parent = os.getpid()

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


async def end_stale(pid: int, marker: str, patience_s: float) -> None:
    """End the process `pid` if it is still the one whose command line holds `marker`."""
    if pid <= 0 or marker not in command_of(pid):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        try:
            async with asyncio.timeout(patience_s):
                while marker in command_of(pid):  # noqa: ASYNC110 - not our child, so nobody tells
                    await asyncio.sleep(0.02)
        except TimeoutError:
            continue
        return
    raise Busy(f"an old nats-server, process {pid}, does not end; end it by hand")


def command_of(pid: int) -> str:
    """The command line of a process, empty when there is none (or it is only waiting to be collected)."""
    entry = Path(f"/proc/{pid}/cmdline")
    try:
        if Path("/proc/self").exists():
            return entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        listed = subprocess.run(  # noqa: S603 - fixed words and a number
            ["ps", "-ww", "-o", "command=", "-p", str(pid)],  # noqa: S607 - macOS: where it is varies
            capture_output=True,
            text=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return listed.stdout


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
