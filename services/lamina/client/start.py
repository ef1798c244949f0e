"""Finding the daemon of a home, and starting one where there is none."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time

from lamina.errors import Timeout, Unavailable
from lamina.home import Home, Lock, Runtime, held
from lamina.store.files import translated_os

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
    until = time.monotonic() + START_S
    while not lock.take():  # asked again and again: a thread that waits for it could not be cancelled
        if time.monotonic() > until:
            raise Timeout(f"process {lock.holder()} has been starting the daemon for {START_S:.0f} s")
        await asyncio.sleep(LOOK_S)
    try:
        runtime = await _standing(home)
        return runtime if runtime is not None else await _start(home)
    finally:
        lock.release()


async def _standing(home: Home) -> Runtime | None:
    """The daemon that is there; one that is just starting or ending is waited for."""
    until = time.monotonic() + START_S
    while held(home.daemon_lock):
        runtime = home.runtime()
        if runtime is not None:
            return runtime
        if time.monotonic() > until:
            raise Timeout(f"the daemon has been starting or ending for {START_S:.0f} s; its log is {home.log_file}")
        await asyncio.sleep(LOOK_S)
    return None


async def _start(home: Home) -> Runtime:
    command = [sys.executable, "-m", "lamina.cli", "--home", str(home.path), "up", "--idle-exit", str(IDLE_EXIT_S)]
    with translated_os(home.log_file), home.log_file.open("ab") as log:
        size = log.tell()
        child = subprocess.Popen(  # noqa: ASYNC220, S603 - our own command; it returns as soon as it has forked
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/", env=os.environ
        )
    try:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            runtime = home.runtime()
            if runtime is not None:
                return runtime
            code = child.poll()
            if code is not None:
                raise Unavailable(f"the daemon ended with code {code} while starting: {_last_words(home, size)}")
            await asyncio.sleep(LOOK_S)
        child.terminate()
        raise Timeout(f"the daemon did not come up within {START_S:.0f} s; its log is {home.log_file}")
    finally:
        _leave(child)


def _leave(child: subprocess.Popen[bytes]) -> None:
    """The daemon outlives us on purpose; should it end before us, it is not left behind as a zombie."""
    threading.Thread(target=child.wait, name="lamina-daemon-reaper", daemon=True).start()


def _last_words(home: Home, size: int) -> str:
    text = home.log_file.read_bytes()[size:][-TAIL_BYTES:].decode("utf-8", "replace").strip()
    return text.splitlines()[-1] if text else f"it said nothing; see {home.log_file}"
