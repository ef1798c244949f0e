"""Forgetting in the daemon: it takes the requests of clients, and ends what a stop of the machine interrupted."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from lamina.bus import Bus
from lamina.errors import Invalid, LaminaError
from lamina.forget.run import forget, resume, unfinished
from lamina.home import Home
from lamina.ids import SUBJECT_ROOT, space_of, untoken
from lamina.log import get_logger
from lamina.requests import Forget
from lamina.runtime.registry import Server

AGAIN_S = 60.0
log = get_logger()


class Forgetting:
    """Of one home. `serve` until cancelled."""

    def __init__(self, bus: Bus, home: Home) -> None:
        self._bus = bus
        self._home = home

    async def serve(self, ready: asyncio.Event) -> None:
        subscription = await self._bus.serve(f"{SUBJECT_ROOT}.do.*.*.forget", self._answer, queue="forget")
        ready.set()
        try:
            while True:
                if unfinished(self._home):
                    await self._resume()
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


def service() -> Server:
    """The `forget` service, for the entry-point group `lamina.services`."""
    return Server(name="forget", serve=lambda bus, home, ready: Forgetting(bus, home).serve(ready))
