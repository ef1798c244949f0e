"""Finding the daemon of a home, and starting one where there is none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

from lamina.errors import Timeout, Unavailable
from lamina.home import Home, Lock, Runtime

START_S = 20.0
LOOK_S = 0.02
IDLE_EXIT_S = 300
TAIL_BYTES = 2_000


async def daemon(home: Home) -> Runtime:
    """The running daemon of `home`; started, detached, when there is none.

    It ends by itself when nobody was connected for five minutes. `Unavailable` with its last words when it
    does not come up.
    """
    runtime = home.runtime()
    if runtime is not None:
        return runtime
    home.prepare()
    lock = Lock(home.run / "start.lock")
    await asyncio.to_thread(lock.take, wait=True)
    try:
        runtime = home.runtime()
        return runtime if runtime is not None else await _start(home)
    finally:
        lock.release()


async def _start(home: Home) -> Runtime:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "up", "--idle-exit", str(IDLE_EXIT_S)]
    with home.log_file.open("ab") as log:
        size = log.tell()
        child = subprocess.Popen(  # noqa: ASYNC220, S603 - our own command; it returns as soon as it has forked
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/", env=os.environ
        )
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        runtime = home.runtime()
        if runtime is not None:
            _leave(child)
            return runtime
        code = child.poll()
        if code is not None:
            raise Unavailable(f"the daemon ended with code {code} while starting: {_last_words(home, size)}")
        await asyncio.sleep(LOOK_S)
    child.terminate()
    raise Timeout(f"the daemon did not come up within {START_S:.0f} s; its log is {home.log_file}")


def _leave(child: subprocess.Popen[bytes]) -> None:
    """The daemon outlives us on purpose: it is not waited for, and that is no leak to warn of."""
    child.returncode = 0


def _last_words(home: Home, size: int) -> str:
    text = home.log_file.read_bytes()[size:][-TAIL_BYTES:].decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else f"it said nothing; see {home.log_file}"
