"""Forgetting in the daemon: it takes the requests of clients, and ends what a stop of the machine interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import time

import msgspec

from lamina.bus import Bus
from lamina.config import load
from lamina.errors import Invalid, LaminaError
from lamina.forget.run import expire, forget, resume, unfinished
from lamina.home import Home
from lamina.ids import SUBJECT_ROOT, space_of, token, untoken
from lamina.log import get_logger
from lamina.requests import Forget
from lamina.runtime.registry import Server

AGAIN_S = 60.0
DAY_S = 86_400.0
log = get_logger()


class Forgetting:
    """Of one home. `serve` until cancelled."""

    def __init__(self, bus: Bus, home: Home) -> None:
        self._bus = bus
        self._home = home

    async def serve(self, ready: asyncio.Event) -> None:
        subscription = await self._bus.serve(f"{SUBJECT_ROOT}.do.*.*.forget", self._answer, queue="forget")
        ready.set()
        expire_at = time.monotonic() + AGAIN_S
        try:
            while True:
                if unfinished(self._home):
                    await self._resume()
                if time.monotonic() >= expire_at:
                    expire_at += DAY_S
                    await self._expire()
                await asyncio.sleep(AGAIN_S)
        finally:
            with contextlib.suppress(LaminaError):
                await subscription.close()

    async def _answer(self, subject: str, payload: bytes) -> bytes:
        space = space_of(subject)
        untoken(space)  # it becomes a folder's name
        try:
            request = msgspec.json.decode(payload, type=Forget)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Invalid(f"the request is not understood: {error}") from error
        receipt = await forget(self._home, self._bus, space, request)
        log.info("forgotten", space=space, events=len(receipt.ids), found=len(receipt.found), dry_run=request.dry_run)
        return msgspec.json.encode(receipt)

    async def _resume(self) -> None:
        try:
            for receipt in await resume(self._home, self._bus):
                log.info("forgotten", space=receipt.space, messages=receipt.messages, found=len(receipt.found))
        except LaminaError as error:
            log.warning("forgetting_put_off", error=f"{type(error).__name__}: {error}", again_in_s=AGAIN_S)

    async def _expire(self) -> None:
        """Let go what the policy does not keep; a space that it would empty is said, and left alone."""
        policy = load(self._home.config).retention
        if not (policy.turns_days or policy.results_days):
            return
        for name in self._home.space_names():
            try:
                done = await expire(self._home, self._bus, token(name), policy, now_us=time.time_ns() // 1000)
                log.info("expired", space=name, messages=done.messages, found=len(done.found))
            except LaminaError as error:
                log.warning("not_expired", space=name, error=f"{type(error).__name__}: {error}")


def service() -> Server:
    """The `forget` service, for the entry-point group `lamina.services`."""
    return Server(name="forget", serve=lambda bus, home, ready: Forgetting(bus, home).serve(ready))
