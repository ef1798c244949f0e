"""Operating-system facts about a child process: that it dies with us, and that an old one is found and ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lamina.errors import Busy

_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGTERM
if os.getppid() != int(sys.argv[1]):
    sys.exit("the supervisor has gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


def dying_with_us(command: Sequence[str]) -> list[str]:
    """A command that runs `command` so that Linux ends it (SIGTERM) when this process dies, however it dies.

    A launcher asks for that and becomes the command; a `preexec_fn` would not be safe beside other threads.
    Elsewhere there is no such thing: a stale child is found and ended at the next start.
    """
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]


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
    raise Busy(f"an old child, process {pid} ({marker}), does not end; end it by hand")


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
